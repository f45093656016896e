package shard

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/detent-go/detent/internal/rt"
	"github.com/detent-go/detent/internal/slab"
)

// strong is a Target that can be weakened, and counts how often it has been.
type strong struct{ weakened int }

func (*strong) Fire(*Shard, Handle) {}

func (w *strong) Weaken(*Shard) Weak {
	w.weakened++
	return new(weak)
}

type weak struct{ h Handle }

func (*weak) Fire(*Shard, Handle)   {}
func (w *weak) HeldLocked(h Handle) { w.h = h }

// sweepNow makes a sweep without a cycle of the collector.
func sweepNow(g *Group) {
	g.sweeper.mu.Lock()
	g.sweeper.rests = 0
	g.sweeper.mu.Unlock()
	g.sweep()
}

// noCycles has the collector rest until the test ends.
func noCycles(t *testing.T) {
	if !rt.Hides {
		t.Skip("in a portable build there are no sweeps")
	}
	was := debug.SetGCPercent(-1)
	t.Cleanup(func() { debug.SetGCPercent(was) })
	runtime.GC() // until the one under way has ended
}

// TestSweep: a timer is weakened at the second sweep that finds it pending, once;
// and a start anew begins anew.
func TestSweep(t *testing.T) {
	noCycles(t)
	g := newReal(t, Config{Shards: 2})
	type started struct {
		s *Shard
		h Handle
		w *strong
	}
	var all []started
	n := 2*slab.ChunkSize + 100
	for range n {
		w := new(strong)
		s, h, _ := g.Start(&Timer{Deadline: g.clock() + int64(time.Hour), Grid: 8, Kind: Send, Target: w}, g.clock())
		all = append(all, started{s, h, w})
	}
	for sweeps := range 5 {
		for k, x := range all {
			if want := max(0, min(sweeps-1, 1)); x.w.weakened != want {
				t.Fatalf("timer %d has been weakened %d times after %d sweeps", k, x.w.weakened, sweeps)
			}
			x.s.Lock()
			at := x.s.actionLocked(x.h.Index()).t
			x.s.Unlock()
			if w, ok := at.(*weak); ok != (sweeps > 1) || ok && w.h != x.h {
				t.Fatalf("timer %d is held by a %T after %d sweeps", k, at, sweeps)
			}
		}
		sweepNow(g)
	}
	for _, x := range all {
		x.s.LockToStart()
		st := &Timer{Deadline: g.clock() + int64(time.Hour), Grid: 8, Kind: Send, Target: x.w}
		h, ok := x.s.RestartLocked(x.h, st, g.clock())
		x.s.EndReset(st)
		if !ok {
			t.Fatal("Restart on a closed group")
		}
		defer x.s.Stop(h)
	}
	sweepNow(g)
	sweepNow(g)
	for k, x := range all {
		if x.w.weakened != 2 {
			t.Fatalf("timer %d has been weakened %d times after a start anew", k, x.w.weakened)
		}
	}
}

// TestSweepsAsked: there is a sweep in the next cycle where there is something for
// it, and none otherwise.
func TestSweepsAsked(t *testing.T) {
	noCycles(t)
	g := newReal(t, Config{Shards: 1})
	begin := func(k Kind, at Target) (*Shard, Handle) {
		s, h, _ := g.Start(&Timer{Deadline: g.clock() + int64(time.Hour), Grid: 8, Kind: k, Target: at, Period: int64(time.Hour)}, g.clock())
		return s, h
	}
	nothing := target(func(*Shard, Handle) {})
	for _, k := range []Kind{Call, Send, Sleep, Tick} {
		s, h := begin(k, nothing)
		if g.sweeper.armed.Load() {
			t.Fatalf("a sweep for a timer of kind %d", k)
		}
		defer s.Stop(h)
	}
	s, h := begin(Send, new(strong))
	if !g.sweeper.armed.Load() {
		t.Fatal("no sweep for a timer that can be weakened")
	}
	swept := func(t *testing.T, want bool) {
		t.Helper()
		g.sweeper.mu.Lock()
		g.sweeper.rests = 0
		g.sweeper.mu.Unlock()
		// The cycle's own sweep comes later, or has been made by then.
		g.sweeper.armed.Store(false)
		g.sweep()
		if got := g.sweeper.armed.Load(); got != want {
			t.Fatalf("another sweep: %v, want %v", got, want)
		}
	}
	swept(t, true) // It has been seen,
	swept(t, true) // and is weakened,
	swept(t, false)
	s.Stop(h)
	s, h = begin(Send, new(strong))
	if !g.sweeper.armed.Load() {
		t.Fatal("no sweep for another timer")
	}
	s.Stop(h)
	swept(t, false)

	// A cycle of the collector starts it.
	_, h = begin(Send, new(strong))
	defer s.Stop(h)
	eventually(t, "a sweep", func() bool {
		runtime.GC()
		s.Lock()
		defer s.Unlock()
		_, ok := s.actionLocked(h.Index()).t.(*weak)
		return ok
	})
}

// TestSweepClosed: a sweep meets a group that is being closed.
func TestSweepClosed(t *testing.T) {
	noCycles(t)
	for range 50 {
		g := NewGroup(Config{Shards: 1})
		for range 3 * slab.ChunkSize {
			g.Start(&Timer{Deadline: g.clock() + int64(time.Hour), Grid: 8, Kind: Send, Target: new(strong)}, g.clock())
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for range 3 {
				sweepNow(g)
			}
		}()
		g.Close()
		<-ended
	}
}
