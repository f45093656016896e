package bench

import (
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/detent-go/detent/cmd/internal/load"
	"github.com/detent-go/detent/timer"
)

const opLane = "lane"

// A laneKind is a way to make a lane.
type laneKind string

const (
	lanePlain laneKind = "plain"
	laneSpin  laneKind = "spin"
	laneFIFO  laneKind = "fifo"
	// laneNone is the default service, whose sleeps spin.
	laneNone laneKind = "none"
)

// lanePriority is that of laneFIFO.
const lanePriority = 80

func (k laneKind) options() (*timer.LaneOptions, error) {
	switch k {
	case lanePlain, laneNone:
		return nil, nil
	case laneSpin:
		return &timer.LaneOptions{Spin: true}, nil
	case laneFIFO:
		return &timer.LaneOptions{Priority: lanePriority}, nil
	}
	return nil, fmt.Errorf("unknown lane %q", k)
}

const (
	lanePeriod = time.Millisecond
	fifoPeriod = 50 * time.Microsecond
)

// A beat is one timer that fires again and again, by a schedule of its own: how
// late it is for one deadline does not move the next. Its fields are the
// callback's, but for from.
type beat[T handle] struct {
	t        T
	period   int64
	deadline int64
	// skip leaves out deadlines that have passed before the callback comes to
	// them. Otherwise each counts, as late as it is.
	skip   bool
	from   atomic.Int64 // the first deadline that counts
	window int64
	late   []int64
	ended  chan struct{}
}

func (b *beat[T]) fire() {
	for t := now(); b.deadline <= t; t = now() {
		from := b.from.Load()
		if b.deadline >= from {
			if b.deadline-from >= b.window && len(b.late) > 0 {
				close(b.ended)
				return
			}
			b.late = append(b.late, t-b.deadline)
		}
		if b.deadline += b.period; b.skip && b.deadline < t {
			b.deadline += (t - b.deadline) / b.period * b.period
		}
	}
	b.t.Reset(time.Duration(b.deadline - now()))
}

// lane has one timer fire every req.D on a lane of kind req.Lane, or by the engine
// itself where that has no lanes, under the load req.Mode with req.N pairs: from
// req.Lead after that has begun, for req.Window.
func (h *host[T]) lane(req request) (values, error) {
	if req.D <= 0 {
		return nil, fmt.Errorf("a period of %v", req.D)
	}
	e, end, err := h.engine.Lane(laneKind(req.Lane))
	if err != nil {
		return nil, err
	}
	b := &beat[T]{period: int64(req.D), skip: laneKind(req.Lane) == laneFIFO, window: int64(req.Window), ended: make(chan struct{})}
	b.late = make([]int64, 0, req.Window/req.D+1024)
	b.from.Store(math.MaxInt64)
	// The callback uses b.t, so that is set before the timer can fire.
	b.t = e.AfterFunc(time.Hour, b.fire)
	b.deadline = now() + b.period
	b.t.Reset(req.D)
	time.Sleep(10 * req.D)
	stop, err := load.Kind(req.Mode).Start(req.N)
	if err != nil {
		b.t.Stop()
		_ = end()
		return nil, err
	}
	b.from.Store(now() + int64(req.Lead))
	<-b.ended
	stop()
	v := values{}
	v.lateness(b.late)
	return v, end()
}

// playLane measures lanes beside package time, and one with a priority beside
// cyclictest.
func playLane(s *stage) error {
	ws, err := s.pair(s.procs)
	if err != nil {
		return err
	}
	against, priority := s.yardstick()
	return s.rounds(func(int) error {
		every := func(w *worker, name string, req request) error {
			req.Op, req.D, req.N = opLane, lanePeriod, s.plan.LoadPairs
			return s.laneRow(w, name, req)
		}
		for _, w := range ws {
			if err := every(w, "idle", request{Lane: string(lanePlain), Mode: string(load.Idle)}); err != nil {
				return err
			}
		}
		for _, w := range ws {
			if err := every(w, "idle, spinning", request{Lane: string(laneSpin), Mode: string(load.Idle)}); err != nil {
				return err
			}
		}
		for _, w := range ws {
			req := request{Op: opLoad, Lane: string(laneNone), Mode: string(load.Idle), D: busySleep}
			if err := s.laneRow(w, "idle, Sleep(100us) of WithSpin", req); err != nil {
				return err
			}
		}
		for _, k := range load.Kinds()[1:] {
			for _, w := range ws {
				if err := every(w, s.loadName(k), request{Lane: string(lanePlain), Mode: string(k)}); err != nil {
					return err
				}
			}
		}
		for _, w := range ws {
			req := request{Op: opLoad, Lane: string(lanePlain), Mode: string(load.SpinFour), D: busySleep}
			if err := s.laneRow(w, "Sleep(100us), "+string(load.SpinFour), req); err != nil {
				return err
			}
		}
		if !priority {
			return nil
		}
		return s.roundFIFO(ws[1], against)
	})
}

// laneRow has w measure req for two rows of the same name. A lane needs a while to
// find the scheduler saturated, most where goroutines wake each other.
func (s *stage) laneRow(w *worker, name string, req request) error {
	req.Window = s.plan.LoadWindow
	if w.side == Detent && load.Kind(req.Mode) != load.Idle {
		req.Lead = s.plan.LaneLead
		if load.Kind(req.Mode) == load.PingPong {
			req.Lead *= 5
		}
	}
	v, err := w.call(req)
	if err != nil {
		return err
	}
	s.addAll(name, w.side, v, specLateP50, specLateP99)
	return nil
}

func (s *stage) loadName(k load.Kind) string {
	if k == load.PingPong {
		return fmt.Sprintf("%d pairs of %s", s.plan.LoadPairs, k)
	}
	return string(k)
}
