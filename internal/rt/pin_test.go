package rt

import (
	"runtime"
	"sync"
	"testing"
)

// TestPin: a pinned goroutine stays on its P, however much others want to run,
// and can be pinned more than once.
func TestPin(t *testing.T) {
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 2000 {
				p := Pin()
				if p < 0 || p >= runtime.GOMAXPROCS(0) || !Pinned && p != 0 {
					t.Errorf("Pin = %d of %d", p, runtime.GOMAXPROCS(0))
				}
				for range 20 {
					if again := Pin(); again != p {
						t.Errorf("pinned to P %d, then on P %d", p, again)
					}
					Unpin()
				}
				Unpin()
				runtime.Gosched()
			}
		})
	}
	wg.Wait()
}

// TestUnpin: what Pin began, as often as it did, Unpin ends; afterwards the
// goroutine can block and be moved, and the world be stopped.
func TestUnpin(t *testing.T) {
	for range 100 {
		Pin()
		Pin()
		Unpin()
		Unpin()
		done := make(chan struct{})
		go close(done)
		<-done
	}
	runtime.GC()
}
