package rt

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

// TestHiddenChan: a hidden reference is the channel itself.
func TestHiddenChan(t *testing.T) {
	c := make(chan int, 1)
	h := HideChan(c)
	if h.Chan() != c {
		t.Fatal("Chan is another channel")
	}
	h.Chan() <- 7
	if v := <-c; v != 7 {
		t.Fatalf("received %d", v)
	}
	// A copy refers to the same one.
	again := h
	c <- 8
	if v := <-again.Chan(); v != 8 {
		t.Fatalf("received %d", v)
	}
	runtime.KeepAlive(c)
}

// hidden makes channels that nobody but their hidden references knows of, and
// counts those of which the collector has told.
func hidden(n int, told *atomic.Int64) []HiddenChan[time.Time] {
	hs := make([]HiddenChan[time.Time], n)
	for k := range hs {
		c := make(chan time.Time, 1)
		h := HideChan(c)
		hs[k] = h
		BeforeCollected(c, func() {
			// Until this returns the channel can be used.
			select {
			case h.Chan() <- time.Now():
			default:
			}
			if len(h.Chan()) != 1 {
				told.Add(-1 << 32)
			}
			told.Add(1)
		})
	}
	return hs
}

// TestCollected: hidden references do not keep channels, even if they are used
// all the time.
func TestCollected(t *testing.T) {
	if !Hides {
		t.Skip("in this build the references are not hidden")
	}
	const n = 50
	var told atomic.Int64
	hs := hidden(n, &told)
	for limit := time.Now().Add(time.Minute); told.Load() != n; {
		if time.Now().After(limit) || told.Load() < 0 {
			t.Fatalf("%d of %d channels were collected", told.Load(), n)
		}
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	runtime.KeepAlive(hs)
}

// TestHeld: a channel that a goroutine holds, or only waits for, is not
// collected; and works, by its hidden reference.
func TestHeld(t *testing.T) {
	var told atomic.Int64
	waits := make(chan HiddenChan[int])
	got := make(chan int)
	go func() { // nobody else refers to c
		c := make(chan int)
		BeforeCollected(c, func() { told.Add(1) })
		waits <- HideChan(c)
		got <- <-c
	}()
	held := make(chan int, 1)
	BeforeCollected(held, func() { told.Add(1) })
	hw, hh := <-waits, HideChan(held)
	for range 10 {
		runtime.GC()
		// Finalizers run on one goroutine, in order: one that runs after the
		// collection shows that theirs would have run, had they been due.
		ran := make(chan struct{})
		runtime.SetFinalizer(new([64]byte), func(*[64]byte) { close(ran) })
		for waited := false; !waited; {
			runtime.GC()
			select {
			case <-ran:
				waited = true
			case <-time.After(time.Millisecond):
			}
		}
	}
	if told.Load() != 0 {
		t.Fatalf("%d channels in use were taken to be collected", told.Load())
	}
	hw.Chan() <- 5
	if v := <-got; v != 5 {
		t.Errorf("received %d", v)
	}
	hh.Chan() <- 6
	if v := <-held; v != 6 {
		t.Errorf("received %d", v)
	}
	runtime.KeepAlive(held)
}
