//go:build linux && !detent_portable

package shard

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/detent-go/detent/internal/rt"
)

// TestBlameScheduler keeps every P busy from before a deadline until a while after
// the kernel has woken the witness for it: that while is the scheduler's part of
// the lateness, at least, whatever the clock.
func TestBlameScheduler(t *testing.T) {
	for name, c := range map[string]Clock{"monotonic": Monotonic, "boottime": Boottime, "realtime": Realtime} {
		t.Run(name, func(t *testing.T) { blameScheduler(t, c) })
	}
}

func blameScheduler(t *testing.T, c Clock) {
	const while = 20 * ms
	for range 100 {
		var g *Group
		if config := (Config{Shards: 1, Blame: true}); c == Monotonic {
			g = NewGroup(config)
		} else {
			var err error
			if g, err = NewGroupOn(c, OnMove{}, config); err != nil {
				t.Skip(err)
			}
		}
		start := func(at int64) <-chan struct{} {
			fired := make(chan struct{}, 1)
			g.Start(&Timer{Deadline: at, Grid: Exact, Kind: Send, Func: func() { fired <- struct{}{} }}, g.clock())
			return fired
		}
		<-start(g.clock() + 100_000) // for the witness to be there
		s := g.Shards()[0]
		s.Lock()
		w := s.witness
		s.Unlock()
		if w == nil {
			t.Fatal(g.Stats().BlameErr)
		}

		deadline := g.clock() + 5*ms
		at := deadline + g.shift()
		fired := start(deadline)
		forced := make(chan bool)
		go func() {
			told := true
			busy := allBusy(func(now int64) bool {
				if now < at {
					return false
				}
				woken, ok := w.Woken(0, at, now)
				told = ok && now < at+1000*ms
				return !told || now > woken+while
			}, func() bool { return rtNow() < at })
			forced <- busy && told
		}()
		busy := <-forced
		<-fired
		b := g.Stats().Blame
		g.Close()
		// If the Ps were not busy in time, or the witness did not wait, it is tried
		// again.
		if got := b.Told.Scheduler.Max; busy {
			// The times of the clocks are read to be the same within a microsecond.
			if got < while-1000 {
				t.Errorf("the scheduler is blamed for %v, want at least %v", time.Duration(got), time.Duration(while))
			}
			t.Logf("kernel %v, scheduler %v", time.Duration(b.Told.Kernel.Max), time.Duration(got))
			return
		}
	}
	t.Skip("the Ps could not be kept busy at the right time, or the witness did not wait: the machine is too busy")
}

// allBusy occupies every P until the function done says so. It returns false, and
// does nothing, if that could not be done while begin still allows it.
func allBusy(done func(now int64) bool, begin func() bool) bool {
	n := int32(runtime.GOMAXPROCS(0))
	var pinned, left atomic.Int32
	var over, failed atomic.Bool
	left.Store(n)
	spin := func(first bool) {
		// A pinned goroutine cannot be taken off its P. But if the world is about to
		// be stopped, the others wait to get one.
		rt.Pin()
		pinned.Add(1)
		for limit := rtNow() + 100*ms; pinned.Load() < n && !failed.Load(); {
			if rtNow() > limit {
				failed.Store(true)
			}
		}
		if first {
			if !begin() {
				failed.Store(true)
			}
			for !failed.Load() && !done(rtNow()) {
			}
			over.Store(true)
		}
		for !over.Load() && !failed.Load() {
		}
		rt.Unpin()
		left.Add(-1)
	}
	for range n - 1 {
		go spin(false)
	}
	spin(true)
	for left.Load() > 0 {
		runtime.Gosched()
	}
	return !failed.Load()
}

func rtNow() int64 {
	now, _ := rt.Now()
	return now
}
