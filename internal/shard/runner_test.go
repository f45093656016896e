package shard

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestBlocked lets a number of callbacks block at once. All of them are called,
// and so is the one after them, and sleepers wake.
func TestBlocked(t *testing.T) {
	for _, n := range []int{1, 2, 40, 1500} {
		for name, grid := range grids {
			if n == 1500 && (testing.Short() || name == "heap" || name == "wheel") {
				continue
			}
			g := newReal(t, Config{Shards: 1})
			var called atomic.Int64
			release := make(chan struct{})
			for range n {
				start(t, g, Call, grid, time.Millisecond, func(*Shard, Handle) {
					called.Add(1)
					<-release
				})
			}
			eventually(t, "all callbacks to be called", func() bool { return called.Load() == int64(n) })
			var after atomic.Int64
			for _, k := range []Kind{Call, Send, Sleep} {
				for _, grid := range grids {
					start(t, g, k, grid, time.Millisecond, func(*Shard, Handle) { after.Add(1) })
				}
			}
			eventually(t, "timers after the blocked ones", func() bool { return after.Load() == int64(3*len(grids)) })
			if st := g.Stats(); st.Fired != uint64(n+3*len(grids)) || st.Pending != 0 {
				t.Errorf("Fired %d, Pending %d; want %d, 0", st.Fired, st.Pending, n+3*len(grids))
			}
			close(release)
			// The goroutines of blocked callbacks do not stay.
			g.Close()
			eventually(t, "the runners to leave", func() bool {
				s := g.shards[0]
				s.Lock()
				defer s.Unlock()
				return len(s.runners) == 0
			})
		}
	}
}

// TestBlockedReader: the goroutine that is in a blocked callback is not counted
// on for anything else, even if no other callback comes due.
func TestBlockedReader(t *testing.T) {
	for _, grid := range grids {
		g := newReal(t, Config{Shards: 1})
		called, release := make(chan struct{}), make(chan struct{})
		s, _ := start(t, g, Call, grid, 100*time.Microsecond, func(*Shard, Handle) {
			close(called)
			<-release
		})
		<-called
		eventually(t, "the blocked runner to be written off", func() bool {
			s.Lock()
			defer s.Unlock()
			return len(s.runners) == 0
		})
		close(release)
	}
}

// TestGoexit ends the goroutines of callbacks, and those of inline ones.
func TestGoexit(t *testing.T) {
	for _, inline := range []bool{false, true} {
		for _, grid := range grids {
			g := newReal(t, Config{Shards: 1, Inline: inline})
			var called, woken atomic.Int64
			const n = 100
			for k := range n {
				d := time.Duration(k%10) * time.Millisecond / 2
				start(t, g, Call, grid, d, func(*Shard, Handle) {
					called.Add(1)
					runtime.Goexit()
				})
				start(t, g, Sleep, grid, d, func(*Shard, Handle) { woken.Add(1) })
			}
			eventually(t, "all callbacks", func() bool { return called.Load() == n && woken.Load() == n })
			var after atomic.Int64
			for _, grid := range grids {
				start(t, g, Call, grid, time.Millisecond, func(*Shard, Handle) { after.Add(1) })
			}
			eventually(t, "callbacks after Goexit", func() bool { return after.Load() == int64(len(grids)) })
		}
	}
}

// TestBurstRunners: callbacks that are due together and do not block share a few
// goroutines.
func TestBurstRunners(t *testing.T) {
	g := newReal(t, Config{Shards: 1})
	before := runtime.NumGoroutine()
	const n = 20_000
	var called, most atomic.Int64
	for range n {
		start(t, g, Call, Grid(tick), 50*time.Millisecond, func(*Shard, Handle) {
			if called.Add(1)%100 == 0 {
				now := int64(runtime.NumGoroutine())
				for m := most.Load(); now > m && !most.CompareAndSwap(m, now); m = most.Load() {
				}
			}
		})
	}
	eventually(t, "all callbacks", func() bool { return called.Load() == n })
	// Usually it is two; but a machine so busy that callbacks seem blocked sees
	// waves of them, of up to maxWave.
	if more := int(most.Load()) - before; more > 2*maxWave {
		t.Errorf("%d goroutines more for %d callbacks", more, n)
	} else {
		t.Logf("%d goroutines more", more)
	}
}

// TestCloseFromCallback closes the group from within: the callback goes on
// afterwards, whichever goroutine it was called on.
func TestCloseFromCallback(t *testing.T) {
	for _, inline := range []bool{false, true} {
		for _, grid := range grids {
			for range 5 {
				g := newReal(t, Config{Shards: 1, Inline: inline})
				done := make(chan struct{})
				start(t, g, Call, grid, 100*time.Microsecond, func(*Shard, Handle) {
					g.Close()
					close(done)
				})
				waitFor(t, done, "Close from a callback to return")
			}
		}
	}
}

// TestCloseBesideBlocked closes the group while callbacks are blocked for good.
func TestCloseBesideBlocked(t *testing.T) {
	for _, n := range []int{1, 2, 10} {
		for _, grid := range grids {
			g := newReal(t, Config{Shards: 1})
			release := make(chan struct{})
			var called atomic.Int64
			for range n {
				start(t, g, Call, grid, 100*time.Microsecond, func(*Shard, Handle) {
					called.Add(1)
					<-release
				})
			}
			eventually(t, "a callback to be called", func() bool { return called.Load() > 0 })
			var sleepers sync.WaitGroup
			for range 10 {
				sleepers.Add(1)
				start(t, g, Sleep, grid, time.Hour, func(_ *Shard, h Handle) {
					if h != 0 {
						t.Error("a sleeper of an hour was fired")
					}
					sleepers.Done()
				})
			}
			done := make(chan struct{})
			go func() {
				g.Close()
				sleepers.Wait()
				close(done)
			}()
			waitFor(t, done, "Close beside blocked callbacks")
			close(release)
		}
	}
}

func waitFor(t testing.TB, done <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(patience):
		stacks := make([]byte, 1<<20)
		t.Fatalf("waited in vain for %s\n%s", what, stacks[:runtime.Stack(stacks, true)])
	}
}
