package shard

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestOneWakeUp: a timer makes one wake-up, at its limit, however far ahead that
// is: the shard does not tick.
func TestOneWakeUp(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed(t), 0))
	for range 2000 {
		g := NewGroup(Config{Shards: 1, Manual: true})
		g.Advance(rng.Int64N(lastTime) >> rng.IntN(62))
		fired := int64(-1)
		now := g.clock()
		st := &Timer{Deadline: now + 1 + (rng.Int64N(lastTime-now) >> rng.IntN(62)), Grid: Exact, Kind: Call}
		if rng.IntN(3) > 0 {
			st.Grid = Grid(1 << rng.IntN(30))
		}
		st.Func = func() { fired = g.clock() }
		g.Start(st, now)
		due := limit(st.Deadline, st.Grid)
		if next, ok := g.Next(); !ok || next != due {
			t.Fatalf("deadline %d, grid %d: Next = %d, %v, want %d", st.Deadline, st.Grid, next, ok, due)
		}
		g.Advance(lastTime)
		if n := g.Stats().Wakeups; due <= lastTime && (fired != due || n != 1) {
			t.Fatalf("deadline %d, grid %d: fired at %d after %d wake-ups, want %d after 1", st.Deadline, st.Grid, fired, n, due)
		}
	}
}

// TestPushedWakeUps: a timer that is pushed back again and again, like the
// deadline of a busy connection, makes a wake-up for each time that it is come
// to where it is filed, and none for a push.
func TestPushedWakeUps(t *testing.T) {
	const timeout, gap = int64(30 * time.Second), int64(10 * time.Millisecond)
	for _, grid := range []uint8{Exact, Grid(10_000), 0, AutoGrid(timeout)} {
		g := NewGroup(Config{Shards: 1, Manual: true})
		fired := int64(-1)
		s, h, _ := g.Start(&Timer{Deadline: timeout, Grid: grid, Kind: Call, Func: func() { fired = g.clock() }}, 0)
		for now := gap; now <= 10*timeout; now += gap {
			g.Advance(now)
			if !s.Push(h, now+timeout, grid) {
				t.Fatalf("grid %d: push at %d failed", grid, now)
			}
		}
		due := limit(11*timeout, grid)
		g.Advance(due - 1)
		if fired != -1 {
			t.Fatalf("grid %d: fired at %d, was pushed to %d", grid, fired, due)
		}
		g.Advance(due)
		st := g.Stats()
		if fired != due || st.Wakeups > 12 || st.Reset != uint64(10*timeout/gap) {
			t.Errorf("grid %d: fired at %d after %d wake-ups and %d resets; want %d, about 11, %d",
				grid, fired, st.Wakeups, st.Reset, due, 10*timeout/gap)
		}
	}
}

// TestIdle: a group without a timer, or with stopped ones, asks for nothing.
func TestIdle(t *testing.T) {
	g := NewGroup(Config{Shards: 2, Manual: true})
	if next, ok := g.Next(); ok {
		t.Errorf("Next = %d for a new group", next)
	}
	for _, grid := range grids {
		s, h, _ := g.Start(&Timer{Deadline: int64(time.Hour), Grid: grid, Kind: Send, Func: func() { t.Error("fired") }}, 0)
		if !s.Stop(h) {
			t.Error("Stop = false")
		}
	}
	if next, ok := g.Next(); ok {
		t.Errorf("Next = %d after all timers have been stopped", next)
	}
	g.Advance(int64(24 * time.Hour))
	if n := g.Stats().Wakeups; n != 0 {
		t.Errorf("%d wake-ups for stopped timers", n)
	}
}
