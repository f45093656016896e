package netpoll114_test

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/detent-go/detent/lab/engine/netpoll114"
)

// TestStorms: every function runs of very many that are due at once on more Ps than
// their queues have room for, while each P steals timers and tasks from the others.
func TestStorms(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	e, err := netpoll114.Info().New(4)
	if err != nil {
		t.Skip(err)
	}
	for range 1 << 13 {
		e.AfterFunc(time.Hour, func() {}) // Heaps that take longer.
	}
	rounds := 200
	if testing.Short() {
		rounds = 3
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for range rounds {
					var wg sync.WaitGroup
					wg.Add(1000)
					for range 1000 {
						e.AfterFunc(0, wg.Done)
					}
					wg.Wait()
				}
			})
		}
		all.Wait()
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		c, _ := e.Counters()
		t.Fatalf("functions of timers that have fired do not run: %+v", c)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}
