package bench

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
)

const opLoad = "load"

// A busy is a way to keep the Go scheduler busy.
type busy string

const (
	busySpin     busy = "one spinning goroutine a P"
	busySpinFour busy = "four spinning goroutines a P"
	busyPingPong busy = "channel ping-pong"
)

// start makes the load, with pairs of goroutines where it is ping-pong; stop
// ends it and returns when it has ended.
func (b busy) start(pairs int) (stop func(), err error) {
	var end atomic.Bool
	var wg sync.WaitGroup
	switch b {
	case busySpin, busySpinFour:
		n := runtime.GOMAXPROCS(0)
		if b == busySpinFour {
			n *= 4
		}
		for range n {
			wg.Go(func() {
				for !end.Load() {
				}
			})
		}
	case busyPingPong:
		for range pairs {
			ball := make(chan struct{})
			wg.Go(func() {
				for !end.Load() {
					ball <- struct{}{}
				}
				close(ball)
			})
			wg.Go(func() {
				for range ball {
				}
			})
		}
	default:
		return nil, fmt.Errorf("unknown load %q", b)
	}
	return func() {
		end.Store(true)
		wg.Wait()
	}, nil
}

// load sleeps req.D again and again for req.Window under the load req.Mode,
// with req.N pairs.
func (h *host[T]) load(req request) (values, error) {
	h.engine.Sleep(req.D) // sets the engine up
	stop, err := busy(req.Mode).start(req.N)
	if err != nil {
		return nil, err
	}
	var late []int64
	for begin := now(); len(late) == 0 || now()-begin < int64(req.Window); {
		late = append(late, lateBy(req.D, h.engine.Sleep))
	}
	stop()
	v := values{}
	v.lateness(late)
	return v, nil
}

// playLoad compares by difference: what counts is whether a sleeper can rely
// on detent as much as on package time, to within 100 us.
func playLoad(s *stage) error {
	ws, err := s.pair(s.procs)
	if err != nil {
		return err
	}
	p50, p99 := specLateP50, specLateP99
	for _, sp := range []*spec{&p50, &p99} {
		sp.diff, sp.resolution = true, micros(int64(busySleep))
	}
	return s.rounds(func(int) error {
		for _, b := range []busy{busySpin, busySpinFour, busyPingPong} {
			name := string(b)
			if b == busyPingPong {
				name = fmt.Sprintf("%d pairs of %s", s.plan.LoadPairs, b)
			}
			for _, w := range ws {
				v, err := w.call(request{Op: opLoad, Mode: string(b), N: s.plan.LoadPairs, D: busySleep, Window: s.plan.LoadWindow})
				if err != nil {
					return err
				}
				s.addAll(name, w.side, v, p50, p99)
			}
		}
		return nil
	})
}
