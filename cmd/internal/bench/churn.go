package bench

import (
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

const opChurn = "churn"

// churners is how many goroutines start, reset and stop.
const churners = 2

// churnSpans are durations from 1 ms to a minute, as many between 1 and 10 ms
// as between 1 and 10 s: some timers fire, most are pushed back or stopped.
var churnSpans = func() (d [4096]time.Duration) {
	r := rand.New(rand.NewPCG(5, 6))
	for i := range d {
		d[i] = time.Duration(float64(time.Millisecond) * math.Pow(60_000, r.Float64()))
	}
	return d
}()

// churn has two goroutines start, reset and stop timers, req.N each, for
// req.Window. It times every single operation, and a probe: a timer of a
// millisecond that has nothing to do with them.
func (h *host[T]) churn(req request) (values, error) {
	var stop atomic.Bool
	probe := h.startProbe(&stop)
	worst, ops := make([]int64, churners), make([]int64, churners)
	end := now() + int64(req.Window)
	var wg sync.WaitGroup
	for g := range churners {
		wg.Go(func() { worst[g], ops[g] = h.churnLoop(req.N, uint64(g), end) })
	}
	wg.Wait()
	stop.Store(true)
	late := <-probe
	v := values{"worst_op_us": micros(max(worst[0], worst[1])), "ops_per_s": float64(ops[0]+ops[1]) / req.Window.Seconds()}
	v.lateness(late)
	return v, nil
}

// churnLoop returns the longest operation and the number of them.
func (h *host[T]) churnLoop(n int, seed uint64, end int64) (worst, ops int64) {
	var none T
	timers := make([]T, n)
	defer stopAll(timers)
	r := rand.New(rand.NewPCG(7, seed))
	for begin := now(); begin < end; {
		x := r.Uint64()
		t := &timers[x%uint64(n)]
		d := churnSpans[x>>32%uint64(len(churnSpans))]
		switch {
		case *t == none:
			*t = h.engine.AfterFunc(d, nop)
		case x>>60&1 == 0:
			(*t).Reset(d)
		default:
			(*t).Stop()
			*t = none
		}
		// The end of one operation is the beginning of the next.
		done := now()
		worst = max(worst, done-begin)
		ops++
		begin = done
	}
	return worst, ops
}

// startProbe starts a timer that starts the next when it fires, until stop.
// The latenesses come when it has ended.
func (h *host[T]) startProbe(stop *atomic.Bool) <-chan []int64 {
	const d = time.Millisecond
	done := make(chan []int64, 1)
	var late []int64
	var deadline int64
	var fire func()
	fire = func() {
		late = append(late, now()-deadline)
		if stop.Load() {
			done <- late
			return
		}
		deadline = now() + int64(d)
		h.engine.AfterFunc(d, fire)
	}
	deadline = now() + int64(d)
	h.engine.AfterFunc(d, fire)
	return done
}

var (
	specChurnOp    = spec{label: "worst single operation", metric: "worst_op_us", unit: unitUs}
	specChurnProbe = spec{label: "worst lateness of a 1 ms timer", metric: "late_max_us", unit: unitUs}
)

func playChurn(s *stage) error {
	for _, n := range s.plan.Pending {
		if !s.roomFor(pendingCase(n), uint64(n)*bytesPerPair) {
			continue
		}
		ws, err := s.filledPair(s.procs, n)
		if err != nil {
			return err
		}
		err = s.rounds(func(int) error {
			for _, w := range ws {
				v, err := w.call(request{Op: opChurn, N: s.plan.ChurnTimers, Window: s.plan.ChurnWindow})
				if err != nil {
					return err
				}
				s.addAll(pendingCase(n), w.side, v, specChurnOp, specChurnProbe)
			}
			return nil
		})
		if err != nil {
			return err
		}
		if err := s.closeWorkers(); err != nil {
			return err
		}
	}
	return nil
}
