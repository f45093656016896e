package shard

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/detent-go/detent/internal/rt"
)

// owned is a timer with one owner, who knows what it does: so it can tell the
// deadline that a firing belongs to.
type owned struct {
	t        *testing.T
	s        *Shard
	h        Handle
	deadline int64
	fired    atomic.Int64 // when; 0: not
	times    atomic.Int64
}

func (o *owned) Fire(*Shard, Handle) {
	now, _ := rt.Now()
	o.times.Add(1)
	o.fired.Store(now)
}

// gone says that the engine has ended the timer by firing it, and waits for
// that: it may be on its way.
func (o *owned) gone() {
	eventually(o.t, "a timer that is not pending to fire", func() bool { return o.fired.Load() != 0 })
	if at := o.fired.Load(); at < o.deadline {
		o.t.Errorf("fired at %d, %d ns before its deadline", at, o.deadline-at)
	}
}

// TestOwned pushes, resets and stops timers at about the time that they fire.
// What the calls return is true: a timer that was pushed fires at the new time
// or later, one that was stopped does not fire, and any other has fired.
func TestOwned(t *testing.T) {
	seed := seed(t)
	rounds := 4000
	if testing.Short() || race {
		rounds = 800
	}
	for _, c := range []Config{{Shards: 2}, {Shards: 1, Inline: true}} {
		g := newReal(t, c)
		var pushed, stopped, fired atomic.Int64
		var wg sync.WaitGroup
		for k := range 6 {
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(seed, uint64(k)))
				soon := func() int64 {
					now, _ := rt.Now()
					return now + rng.Int64N(1<<(8+rng.IntN(12)))
				}
				for range rounds {
					o := &owned{t: t, deadline: soon()}
					st := &Timer{Deadline: o.deadline, Grid: Exact, Kind: Kind(rng.IntN(2)), Target: o}
					if rng.IntN(2) == 0 {
						st.Grid = Grid(1 << rng.IntN(20))
					}
					now, _ := rt.Now()
					o.s, o.h, _ = g.Start(st, now)
					live := o.h != 0
					for live && rng.IntN(4) > 0 {
						now, _ := rt.Now()
						for until := now + rng.Int64N(20_000); now < until; now, _ = rt.Now() {
						}
						deadline := soon()
						if o.s.Push(o.h, deadline, st.Grid) {
							o.deadline = deadline
							pushed.Add(1)
							continue
						}
						st.Deadline = deadline
						o.s.LockToStart()
						if live = o.s.CurrentLocked(o.h); live {
							o.h, _, _ = o.s.ResetLocked(o.h, st, now)
							o.deadline = deadline
						}
						o.s.EndReset(st)
						live = live && o.h != 0
					}
					if live && rng.IntN(3) == 0 && o.s.Stop(o.h) {
						stopped.Add(1)
						time.Sleep(time.Duration(rng.IntN(1000)) * time.Nanosecond)
						if o.times.Load() != 0 {
							t.Error("a stopped timer fired")
						}
						continue
					}
					o.gone()
					fired.Add(1)
					if n := o.times.Load(); n != 1 {
						t.Errorf("a timer fired %d times", n)
					}
				}
			})
		}
		wg.Wait()
		t.Logf("%d pushed, %d stopped, %d fired", pushed.Load(), stopped.Load(), fired.Load())
	}
}
