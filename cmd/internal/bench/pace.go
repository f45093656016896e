package bench

import (
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/detent-go/detent/cmd/internal/machine"
)

const opPace = "pace"

// A pacer is one timer of many that keep a rate: each fire starts it anew for
// the deadline that follows from its last deadline, not from when it fired,
// so that a late engine has as much to do as a punctual one.
type pacer[T handle] struct {
	t        T
	period   int64
	deadline int64
	load     *paceLoad
}

// paceLoad is what the pacers share. They measure themselves: a timer that
// ended the window would be one more in the engine, or worse, in the other.
type paceLoad struct {
	fired   atomic.Int64
	late    []int64      // of the first so many to fire
	phase   atomic.Int32 // the marks that have been passed
	marks   [2]paceMark  // the window's beginning and end
	window  int64
	ended   sync.WaitGroup
	stopped atomic.Bool
}

// A paceMark is noted by the first pacer to fire when it is due. The fields
// below due belong to that pacer until ended is done.
type paceMark struct {
	due   atomic.Int64
	at    int64
	fired int64
	used  machine.Usage
}

func (p *pacer[T]) fire() {
	t, l := now(), p.load
	fired := l.fired.Add(1)
	if fired <= int64(len(l.late)) {
		l.late[fired-1] = t - p.deadline
	}
	if i := l.phase.Load(); int(i) < len(l.marks) && t >= l.marks[i].due.Load() && l.phase.CompareAndSwap(i, i+1) {
		m := &l.marks[i]
		m.at, m.fired, m.used = t, fired, machine.ReadUsage()
		if i == 0 {
			l.marks[1].due.Store(t + l.window)
		} else {
			l.stopped.Store(true)
		}
	}
	if l.stopped.Load() {
		l.ended.Done()
		return
	}
	p.deadline += p.period
	p.t.Reset(time.Duration(p.deadline - now()))
}

// pace keeps PaceRate exact timers of 1 to 5 ms due a second for req.Window,
// after a fifth of it to begin.
func (h *host[T]) pace(req request) (values, error) {
	l := &paceLoad{
		late:   make([]int64, int64(2*PaceRate*req.Window.Seconds())+1024),
		window: max(int64(req.Window), 1),
	}
	l.marks[0].due.Store(now() + int64(req.Window/5))
	l.marks[1].due.Store(math.MaxInt64)
	startPacers(h.engine.Exact(), l)
	l.ended.Wait()

	from, till := &l.marks[0], &l.marks[1]
	seconds := time.Duration(till.at - from.at).Seconds()
	v := values{"fired_per_s": float64(till.fired-from.fired) / seconds}
	v.addCPU("cpu_ms_per_s", from.used, till.used, func(d time.Duration) float64 { return millis(d) / seconds })
	end := min(till.fired, int64(len(l.late)))
	v.lateness(l.late[min(from.fired, end):end])
	return v, nil
}

// startPacers starts as many pacers as make PaceRate.
func startPacers[T handle](e engine[T], l *paceLoad) {
	r := rand.New(rand.NewPCG(8, 9))
	l.ended.Add(1) // until all are there
	defer l.ended.Done()
	for rate := 0.0; rate < PaceRate; {
		p := &pacer[T]{period: int64(time.Millisecond) + r.Int64N(int64(4*time.Millisecond)), load: l}
		rate += 1e9 / float64(p.period)
		l.ended.Add(1)
		// Its callback uses p.t, so that is set before the timer can fire.
		p.t = e.AfterFunc(time.Hour, p.fire)
		p.deadline = now() + p.period
		p.t.Reset(time.Duration(p.period))
	}
}

var (
	specPaceCPU = spec{label: "CPU a second", metric: "cpu_ms_per_s", unit: unitMs}
	specFired   = spec{label: "fired a second", metric: "fired_per_s", unit: unitCount, higher: true}
)

func playPace(s *stage) error {
	ws, err := s.pair(s.procs)
	if err != nil {
		return err
	}
	const exact = "exact, 1-5 ms each"
	err = s.rounds(func(int) error {
		for _, w := range ws {
			v, err := w.call(request{Op: opPace, Window: s.plan.PaceWindow})
			if err != nil {
				return err
			}
			s.addAll(exact, w.side, v, specPaceCPU, specFired, specLateP50, specLateP99)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := s.closeWorkers(); err != nil {
		return err
	}
	return s.playBurst("default slack, a second each", s.plan.Pace, specPaceCPU, specLateP50, specLateP99)
}
