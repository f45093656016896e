package shard

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/detent-go/detent/internal/rt"
)

// event is one timer of the stress tests, from its start to its end. Many
// goroutines stop, push and reset it, while it fires.
type event struct {
	st *stress
	s  *Shard
	h  Handle
	k  Kind

	// earliest is not after any deadline that the timer ever had.
	earliest atomic.Int64
	fired    atomic.Int64
	ended    atomic.Int64 // stopped, or restarted as another event
	woken    atomic.Int64 // by Close
	ticks    atomic.Int64
}

// stress is a group with the events that goroutines have made of it.
type stress struct {
	t     *testing.T
	g     *Group
	known [64]atomic.Pointer[event]

	mu  sync.Mutex
	all []*event

	started, stopped, reset, fired atomic.Int64
	closing                        atomic.Bool
}

// Fire is called for events with a Target, under the shard's lock or not.
func (e *event) Fire(s *Shard, h Handle) {
	now, _ := rt.Now()
	if h == 0 && e.st.closing.Load() && e.k == Sleep {
		// By Close, or due at its start: either way once.
		e.woken.Add(1)
		return
	}
	if at := e.earliest.Load(); now < at {
		e.st.t.Errorf("kind %d: fired %d ns before the earliest of its deadlines", e.k, at-now)
	}
	e.st.fired.Add(1)
	if e.k == Tick {
		e.ticks.Add(1)
		return
	}
	e.fired.Add(1)
}

func (e *event) call() { e.Fire(nil, 1) }

// lower makes earliest no later than the deadline, before the timer may have it.
func (e *event) lower(deadline int64) {
	for at := e.earliest.Load(); deadline < at && !e.earliest.CompareAndSwap(at, deadline); at = e.earliest.Load() {
	}
}

// spec returns a new event, due within some milliseconds or not in this test.
func (st *stress) spec(rng *rand.Rand, now int64) (*event, *Timer) {
	e := &event{st: st, k: Kind(rng.IntN(5) % 4)}
	t := &Timer{Deadline: st.deadline(rng, now), Grid: st.grid(rng), Kind: e.k, Target: e}
	switch {
	case e.k == Tick:
		t.Period = 5_000_000 + rng.Int64N(50_000_000) // thousands of them pile up
	case e.k == Call && rng.IntN(2) == 0:
		t.Func, t.Target = e.call, nil
	}
	e.earliest.Store(t.Deadline)
	return e, t
}

func (st *stress) deadline(rng *rand.Rand, now int64) int64 {
	switch rng.IntN(8) {
	case 0:
		return now + int64(time.Hour)
	case 1:
		return now
	default:
		return now + rng.Int64N(3_000_000)
	}
}

func (st *stress) grid(rng *rand.Rand) uint8 {
	if rng.IntN(3) == 0 {
		return Exact
	}
	return Grid(1 << rng.IntN(24))
}

// add makes e known.
func (st *stress) add(rng *rand.Rand, e *event, s *Shard, h Handle) {
	e.s, e.h = s, h
	st.mu.Lock()
	st.all = append(st.all, e)
	st.mu.Unlock()
	st.known[rng.IntN(len(st.known))].Store(e)
}

// op does something to a random timer. It returns false once the group is
// closed.
func (st *stress) op(rng *rand.Rand) bool {
	now, _ := rt.Now()
	e := st.known[rng.IntN(len(st.known))].Load()
	op := rng.IntN(16)
	if e == nil || op < 4 {
		e, t := st.spec(rng, now)
		s, h, ok := st.g.Start(t, now)
		if ok {
			st.started.Add(1)
			st.add(rng, e, s, h)
		}
		return ok
	}
	switch {
	case op < 8:
		deadline := st.deadline(rng, now)
		e.lower(deadline)
		if e.s.Push(e.h, deadline, st.grid(rng)) {
			st.reset.Add(1)
		}
	case op < 10:
		if e.s.Stop(e.h) {
			e.ended.Add(1)
			st.stopped.Add(1)
		}
	case op < 13:
		return st.resetLocked(rng, e, now)
	default:
		fresh, t := st.spec(rng, now)
		e.s.LockToStart()
		was := e.s.CurrentLocked(e.h)
		h, ok := e.s.RestartLocked(e.h, t, now)
		e.s.EndReset(t)
		if !ok {
			return false
		}
		st.replaced(e, was)
		st.add(rng, fresh, e.s, h)
	}
	return true
}

func (st *stress) resetLocked(rng *rand.Rand, e *event, now int64) bool {
	fresh, t := st.spec(rng, now)
	e.lower(t.Deadline)
	e.s.LockToStart()
	h, pending, ok := e.s.ResetLocked(e.h, t, now)
	e.s.EndReset(t)
	switch {
	case !ok:
		return false
	case pending && h == e.h:
		st.reset.Add(1) // e itself goes on
	default:
		st.replaced(e, pending)
		st.add(rng, fresh, e.s, h)
	}
	return true
}

// replaced notes that another event has been started in the place of e.
func (st *stress) replaced(e *event, pending bool) {
	if pending {
		e.ended.Add(1)
		st.reset.Add(1)
	} else {
		st.started.Add(1)
	}
}

// run lets goroutines at the group until they have done so many operations each,
// or it is closed.
func (st *stress) run(seed uint64, goroutines, ops int) *sync.WaitGroup {
	wg := new(sync.WaitGroup)
	for k := range goroutines {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(k)))
			for n := range ops {
				if !st.op(rng) {
					return
				}
				if n%64 == 0 {
					time.Sleep(time.Duration(rng.IntN(200)) * time.Microsecond)
				}
			}
		})
	}
	return wg
}

// check compares the group's counts with the test's own, and each event's.
func (st *stress) check(closed bool) {
	t := st.t
	s := st.g.Stats()
	got := [...]int64{int64(s.Started), int64(s.Stopped), int64(s.Reset), int64(s.Fired)}
	want := [...]int64{st.started.Load(), st.stopped.Load(), st.reset.Load(), st.fired.Load()}
	if got != want {
		t.Errorf("Started, Stopped, Reset, Fired are %d, want %d", got, want)
	}
	pending := int64(0)
	for _, e := range st.all {
		fired, ended, woken := e.fired.Load(), e.ended.Load(), e.woken.Load()
		switch n := fired + ended + woken; {
		case n > 1, closed && e.k == Sleep && n != 1:
			t.Errorf("kind %d: fired %d times, stopped %d times, woken by Close %d times", e.k, fired, ended, woken)
		case n == 0:
			pending++
		}
	}
	if !closed && int64(s.Pending) != pending {
		t.Errorf("Pending is %d, but %d timers have neither fired nor been stopped", s.Pending, pending)
	}
}

// TestStress lets many goroutines do everything to the same timers while they
// fire. At the end each has fired or been stopped, once.
func TestStress(t *testing.T) {
	for _, c := range []Config{{Shards: 1}, {Shards: 2}, {Shards: 3, Inline: true}} {
		st := &stress{t: t, g: newReal(t, c)}
		ops := 20_000
		if testing.Short() || race {
			ops = 4000
		}
		st.run(seed(t), 8, ops).Wait()
		for _, e := range st.all { // stops tickers, and timers of an hour
			if e.s.Stop(e.h) {
				e.ended.Add(1)
				st.stopped.Add(1)
			}
		}
		for _, s := range st.g.shards {
			checkShard(t, s)
		}
		if p := st.g.Stats().Pending; p != 0 {
			t.Errorf("%d timers are pending after all have been stopped", p)
		}
		eventually(t, "callbacks that have been called", func() bool {
			return int64(st.g.Stats().Fired) == st.fired.Load()
		})
		st.check(false)
		if st.fired.Load() == 0 || st.stopped.Load() == 0 || st.reset.Load() == 0 {
			t.Errorf("fired %d, stopped %d, reset %d: the test does not reach what it is for",
				st.fired.Load(), st.stopped.Load(), st.reset.Load())
		}
	}
}

// TestStressFire is the same with nobody who stops what is left: all timers fire.
func TestStressFire(t *testing.T) {
	st := &stress{t: t, g: newReal(t, Config{Shards: 2})}
	ops := 10_000
	if testing.Short() || race {
		ops = 3000
	}
	st.run(seed(t), 8, ops).Wait()
	now, _ := rt.Now()
	for _, e := range st.all {
		if e.k == Tick { // would go on
			if e.s.Stop(e.h) {
				e.ended.Add(1)
				st.stopped.Add(1)
			}
			continue
		}
		if e.s.Push(e.h, now, Exact) { // never to earlier; counts all the same
			st.reset.Add(1)
		}
		e.lower(now)
		e.s.LockToStart()
		if e.s.CurrentLocked(e.h) {
			h, pending, ok := e.s.ResetLocked(e.h, &Timer{Deadline: now + 2_000_000, Grid: Exact, Kind: e.k, Target: e}, now)
			if !ok || !pending || h != e.h {
				t.Errorf("ResetLocked of a pending timer: %x, %v, %v", h, pending, ok)
			}
			st.reset.Add(1)
		}
		e.s.Unlock()
	}
	eventually(t, "all timers to fire", func() bool {
		return st.g.Stats().Pending == 0 && int64(st.g.Stats().Fired) == st.fired.Load()
	})
	st.check(false)
}

// TestStressClose closes the group in the middle of all that.
func TestStressClose(t *testing.T) {
	rounds := 24
	if testing.Short() || race {
		rounds = 9
	}
	seed := seed(t)
	for round := range rounds {
		st := &stress{t: t, g: newReal(t, Config{Shards: 2, Inline: round%3 == 2})}
		wg := st.run(seed+uint64(round), 6, 1<<30)
		time.Sleep(time.Duration(round) * 3 * time.Millisecond)
		st.closing.Store(true)
		if !st.g.Close() {
			t.Fatal("Close = false")
		}
		if st.g.Close() {
			t.Error("the second Close = true")
		}
		wg.Wait()
		// A callback that has been taken from the shard may still be on its way.
		eventually(t, "callbacks that have been called", func() bool {
			sum := st.fired.Load()
			for _, e := range st.all {
				if e.k == Sleep {
					sum += e.woken.Load()
				}
			}
			return int64(st.g.Stats().Fired) <= sum
		})
		for _, e := range st.all {
			if e.s.Stop(e.h) || e.s.Push(e.h, never, Exact) {
				t.Fatalf("a timer of a closed group was stopped or pushed")
			}
		}
		if p := st.g.Stats().Pending; p != 0 {
			t.Errorf("%d timers are pending in a closed group", p)
		}
		for _, e := range st.all {
			if n := e.fired.Load() + e.ended.Load() + e.woken.Load(); n > 1 || e.k == Sleep && n != 1 {
				t.Errorf("kind %d: fired %d times, stopped %d times, woken by Close %d times",
					e.k, e.fired.Load(), e.ended.Load(), e.woken.Load())
			}
		}
		runtime.GC() // of what the group let go
	}
}
