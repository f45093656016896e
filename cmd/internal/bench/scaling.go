package bench

import (
	"fmt"
	"runtime"
	"sync"
)

const opParallel = "parallel"

// parallel returns the operations a second of one goroutine a P for
// req.Window: start and stop in the ring pattern, or arithmetic.
func (h *host[T]) parallel(req request) (values, error) {
	procs := runtime.GOMAXPROCS(0)
	ops, ns := make([]int64, procs), make([]int64, procs)
	var wg sync.WaitGroup
	for p := range procs {
		switch req.Mode {
		case patternRing:
			wg.Go(func() {
				ring := make([]T, ringSize)
				for i := range ring {
					ring[i] = h.engine.AfterFunc(spans[i], nop)
				}
				h.loopRing(ring, req.Window/5) // reach the steady state
				ops[p], ns[p] = h.loopRing(ring, req.Window)
				stopAll(ring)
			})
		case Arithmetic:
			wg.Go(func() {
				loopArithmetic(req.Window.Nanoseconds() / 5)
				ops[p], ns[p] = loopArithmetic(req.Window.Nanoseconds())
			})
		default:
			return nil, fmt.Errorf("unknown pattern %q", req.Mode)
		}
	}
	wg.Wait()
	var rate float64
	for p := range procs {
		rate += float64(ops[p]) / (float64(ns[p]) / 1e9)
	}
	return values{"ops_per_s": rate}, nil
}

// loopArithmetic neither allocates nor shares memory: it grows with the
// processors as much as anything can on this machine.
func loopArithmetic(window int64) (ops, ns int64) {
	x := uint64(now()) | 1
	begin := now()
	for {
		for range ringSize {
			x ^= x << 13
			x ^= x >> 7
			x ^= x << 17
		}
		ops += ringSize
		if ns = now() - begin; ns >= window {
			break
		}
	}
	if x == 0 { // never: xorshift has no way to zero
		ops = 0
	}
	return ops, ns
}

var (
	specGrowth = spec{label: "operations a second", metric: "growth_ratio", unit: unitRatio, higher: true}
	// specGrowthArithmetic leaves detent a fifth less than what is possible.
	specGrowthArithmetic = spec{
		label: "operations a second, arithmetic", metric: "growth_ratio", unit: unitRatio, higher: true,
		against: Arithmetic, tolerance: 0.25,
	}
)

func playScaling(s *stage) error {
	levels := s.procsLevels()
	if len(levels) < 2 {
		s.skip("all of it", "needs two processors")
		return nil
	}
	// one is each side's rate on one P, measured in the same round.
	type contender struct {
		side, mode string
		workers    []*worker // by level
		one        float64
	}
	var contenders []*contender
	for _, c := range []contender{{side: Time, mode: patternRing}, {side: Detent, mode: patternRing}, {side: Arithmetic, mode: Arithmetic}} {
		engine := c.side
		if c.side == Arithmetic {
			engine = Time
		}
		for _, procs := range levels {
			w, err := s.worker(engine, procs)
			if err != nil {
				return err
			}
			c.workers = append(c.workers, w)
		}
		contenders = append(contenders, &c)
	}
	return s.rounds(func(int) error {
		for i, procs := range levels {
			name := fmt.Sprintf("%s over 1", procsCase(procs))
			for _, c := range contenders {
				v, err := c.workers[i].call(request{Op: opParallel, Mode: c.mode, Window: s.plan.Window})
				if err != nil {
					return err
				}
				if i == 0 {
					c.one = v["ops_per_s"]
					continue
				}
				growth := v["ops_per_s"] / c.one
				if c.side != Arithmetic {
					s.add(name, specGrowth, c.side, growth)
				}
				if c.side != Time {
					s.add(name, specGrowthArithmetic, c.side, growth)
				}
			}
		}
		return nil
	})
}
