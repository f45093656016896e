// Package load keeps the Go scheduler of this process busy, in the ways that
// lateness depends on.
package load

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
)

// A Kind is a way to keep the scheduler busy.
type Kind string

// The kinds.
const (
	Idle     Kind = "idle"
	Spin     Kind = "one spinning goroutine a P"
	SpinFour Kind = "four spinning goroutines a P"
	PingPong Kind = "channel ping-pong"
)

// Kinds returns all kinds, the quiet one first.
func Kinds() []Kind { return []Kind{Idle, Spin, SpinFour, PingPong} }

// Start makes the load, with pairs of goroutines where it is ping-pong; stop
// ends it and returns when it has ended.
func (k Kind) Start(pairs int) (stop func(), err error) {
	var end atomic.Bool
	var wg sync.WaitGroup
	switch k {
	case Idle:
	case Spin, SpinFour:
		n := runtime.GOMAXPROCS(0)
		if k == SpinFour {
			n *= 4
		}
		for range n {
			wg.Go(func() {
				for !end.Load() {
				}
			})
		}
	case PingPong:
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
		return nil, fmt.Errorf("unknown load %q", k)
	}
	return func() {
		end.Store(true)
		wg.Wait()
	}, nil
}
