package bench

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"
)

const opReset = "reset"

// The orders in which pending timers are reset.
const (
	orderStarted = "in order"  // that in which they were started: memory is read ahead
	orderRandom  = "at random" // as traffic comes: each timer is a cache miss
)

// reset pushes the kept timers back, one goroutine a P on timers of its own,
// for req.Window. Each pass pushes further than the one before.
func (h *host[T]) reset(req request) (values, error) {
	procs := runtime.GOMAXPROCS(0)
	if len(h.kept) < procs {
		return nil, fmt.Errorf("%d pending timers for %d goroutines", len(h.kept), procs)
	}
	h.later = max(h.later, 3*time.Hour) + 10*time.Minute
	ops, span := make([]int64, procs), make([]int64, procs)
	var wg sync.WaitGroup
	for p := range procs {
		part := share(h.kept, p, procs)
		wg.Go(func() {
			ops[p], span[p] = resetLoop(part, req.Mode == orderRandom, h.later, req.Window)
		})
	}
	wg.Wait()
	var rate float64 // operations a nanosecond of them all
	for p := range procs {
		rate += float64(ops[p]) / float64(span[p])
	}
	return values{"op_ns": 1 / rate}, nil
}

func resetLoop[T handle](timers []T, random bool, later, window time.Duration) (ops, ns int64) {
	const batch = 256
	n, step := len(timers), 1
	if random {
		step = stride(n)
	}
	begin, i := now(), 0
	for {
		for range batch {
			timers[i].Reset(later)
			later += 100 * time.Nanosecond
			if i += step; i >= n {
				i -= n
			}
		}
		ops += batch
		if ns = now() - begin; ns >= int64(window) {
			return ops, ns
		}
	}
}

// stride returns a step that visits all of n in an order that no prefetcher
// guesses: near the golden section of n and without a common divisor.
func stride(n int) int {
	s := max(int(float64(n)*0.6180339887), 1)
	for gcd(s, n) != 1 {
		s++
	}
	return s % max(n, 2)
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

var specReset = spec{label: "one Reset", metric: "op_ns", unit: unitNs}

func playReset(s *stage) error {
	n := s.plan.Pending[0]
	type level struct {
		procs   int
		workers []*worker
	}
	var levels []level
	for _, procs := range s.procsLevels() {
		ws, err := s.filledPair(procs, n)
		if err != nil {
			return err
		}
		levels = append(levels, level{procs, ws})
	}
	return s.rounds(func(int) error {
		for _, l := range levels {
			for _, order := range []string{orderStarted, orderRandom} {
				name := fmt.Sprintf("%s, %s, %s", pendingCase(n), order, procsCase(l.procs))
				for _, w := range l.workers {
					v, err := w.call(request{Op: opReset, Mode: order, Window: s.plan.Window})
					if err != nil {
						return err
					}
					s.addAll(name, w.side, v, specReset)
				}
			}
		}
		return nil
	})
}

// procsLevels are the GOMAXPROCS at which more than one is measured: one, two
// and as many as the user lets it have.
func (s *stage) procsLevels() []int {
	levels := []int{1, min(2, s.procs), s.procs}
	return slices.Compact(levels)
}

func procsCase(n int) string {
	if n == 1 {
		return "1 proc"
	}
	return fmt.Sprintf("%d procs", n)
}
