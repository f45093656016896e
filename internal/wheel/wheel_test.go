package wheel

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/detent-go/detent/internal/slab"
)

// borders are ticks around which digits carry.
func borders() []int64 {
	var ticks []int64
	for l, span := 0, int64(1); l < Levels; l, span = l+1, span*slots {
		for _, m := range []int64{1, 2, 31, 32, 62, 63} {
			ticks = append(ticks, m*span-1, m*span, m*span+1)
		}
	}
	ticks = append(ticks, MaxTick-1, MaxTick)
	slices.Sort(ticks)
	return slices.Compact(ticks)
}

// TestBorders files a timer at every border as seen from every other one, and
// finds it due at its tick, not before, with a single wake-up.
func TestBorders(t *testing.T) {
	for _, from := range borders() {
		for _, tick := range borders() {
			b := newBench(t, from)
			i := b.insert(tick)
			checkInvariants(t, b.w, b.live)
			b.checkNext()
			if tick > from {
				if next, _, _ := b.w.Next(); next != tick {
					t.Fatalf("at %d: Next = %d for a lone timer of tick %d", from, next, tick)
				}
				if b.drain(tick-1) != 0 {
					t.Fatalf("at %d: tick %d is due a tick before", from, tick)
				}
				checkInvariants(t, b.w, b.live)
			}
			if n := b.drain(max(tick, from)); n != 1 {
				t.Fatalf("at %d: %d timers due at tick %d, want node %d", from, n, tick, i)
			}
			checkInvariants(t, b.w, b.live)
		}
	}
}

// TestLoneTimer: without stopped timers, every wake-up finds a timer due, from
// a tick to the end of time ahead.
func TestLoneTimer(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed(t), 0))
	for range 8000 {
		from := rng.Int64N(MaxTick) >> rng.IntN(48)
		tick := from + rng.Int64N(MaxTick-from+1)>>rng.IntN(48)
		b := newBench(t, from)
		b.insert(tick)
		if next, _, ok := b.w.Next(); !ok || next != tick {
			t.Fatalf("at %d: Next = %d, %v for a lone timer of tick %d", from, next, ok, tick)
		}
		if b.drain(tick) != 1 {
			t.Fatalf("at %d: tick %d was not due in time", from, tick)
		}
	}
}

// TestWakeUps: k timers make no more wake-ups than they have different ticks;
// and stopping others beforehand adds at most one for each slot on the way.
func TestWakeUps(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed(t), 0))
	for range 300 {
		b := newBench(t, rng.Int64N(1<<40))
		ticks := map[int64]bool{}
		var all []uint32
		for range 1 + rng.IntN(200) {
			tick := b.now + 1 + rng.Int64N(1<<rng.IntN(40))
			all = append(all, b.insert(tick))
			ticks[tick] = true
		}
		stopped := 0
		if rng.IntN(2) == 0 {
			for _, i := range all[1:] {
				if rng.IntN(4) > 0 {
					b.remove(i)
					stopped++
				}
			}
		}
		most := len(ticks)
		if stopped > 0 {
			// A slot's min is one that a stopped timer had until the slot is
			// entered, which files every timer on a lower level.
			most = (Levels + 1) * len(b.live)
		}
		wakes := 0
		for len(b.live) > 0 {
			next, _, ok := b.w.Next()
			if !ok {
				t.Fatalf("Next has nothing, with %d timers", len(b.live))
			}
			if wakes++; wakes > most {
				t.Fatalf("%d wake-ups for %d ticks, %d timers stopped", wakes, len(ticks), stopped)
			}
			b.drain(next)
		}
	}
}

// TestStopsLeaveNoWakeUps: a wheel that has been emptied asks for none.
func TestStopsLeaveNoWakeUps(t *testing.T) {
	b := newBench(t, 1000)
	var all []uint32
	for _, tick := range borders() {
		all = append(all, b.insert(tick))
	}
	for _, i := range all {
		b.remove(i)
		checkInvariants(t, b.w, b.live)
	}
	if _, _, ok := b.w.Next(); ok {
		t.Fatal("an empty wheel has something to do next")
	}
}

// TestCatchUp: after a long time without a timer, or with a far one, a timer is
// filed on the level that its distance asks for, and so moved at most that often.
func TestCatchUp(t *testing.T) {
	for _, far := range []bool{false, true} {
		b := newBench(t, 0)
		if far {
			b.insert(1 << 46)
		}
		b.insertAt(1<<40+5, 1<<40, false)
		if b.w.cur != 1<<40 {
			t.Errorf("far %v: the wheel stands at %d, want %d", far, b.w.cur, int64(1<<40))
		}
		checkInvariants(t, b.w, b.live)
		// A slot that has begun must not be passed.
		b.insertAt(1<<40+100, 1<<40, false)
		b.insertAt(1<<40+1000, 1<<40+70, false)
		checkInvariants(t, b.w, b.live)
		if got := b.drain(1<<40 + 100); got != 2 {
			t.Errorf("far %v: %d timers were due, want 2", far, got)
		}
		checkInvariants(t, b.w, b.live)
	}
}

// TestHeldBack: a slot of an upper level that has begun, and whose first timer
// is not near, is not entered; timers before, in and after it come in time.
func TestHeldBack(t *testing.T) {
	b := newBench(t, 0)
	b.insert(64*64 + 4000) // in slot 1 of level 2
	b.drain(64*64 + 1)
	if b.w.cur != 64*64-1 {
		t.Fatalf("the wheel stands at %d, want %d", b.w.cur, 64*64-1)
	}
	for now := int64(64*64 + 1); now < 64*64+3900; now += 333 {
		if n := b.drain(now); n != 0 {
			t.Fatalf("%d timers due at %d", n, now)
		}
		soon := now + 3
		b.insertAt(soon, now, false)
		b.insertAt(now+64, now, true)
		checkInvariants(t, b.w, b.live)
		b.checkNext()
		if n := b.drain(soon); n != 1 {
			t.Fatalf("%d timers due at %d, want 1", n, soon)
		}
		if n := b.drain(now + 64); n != 1 {
			t.Fatalf("%d timers due at %d, want 1", n, now+64)
		}
		checkInvariants(t, b.w, b.live)
	}
}

// TestPortions: a slot with very many timers is entered in bounded steps, begun
// early enough for its size, between which everything else goes on.
func TestPortions(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed(t), 0))
	const many = 6000
	for _, level := range []int{1, 2, 5} {
		b := newBench(t, 0)
		span := int64(1) << (digitBits * level)
		for range many {
			b.insert(3*span + 20 + rng.Int64N(span-20))
		}
		next, _, _ := b.w.Next()
		if least := b.least(); next > least || next < least-many/movesPerTick-1 {
			t.Fatalf("level %d: Next = %d, the least tick is %d", level, next, least)
		}
		more, fired := 0, 0
		for now := next; len(b.live) > 0; {
			before := map[uint32]uint16{}
			for i := range b.live {
				before[i] = b.s.Node(i).Where
			}
			i, state := b.step(now)
			moved := 0
			for i, where := range before {
				if b.s.Node(i).Where != where {
					moved++
				}
			}
			if moved > portion {
				t.Fatalf("level %d: one step moved %d timers", level, moved)
			}
			switch state {
			case More:
				more++
				if more%16 == 0 {
					checkInvariants(t, b.w, b.live)
				}
				// Others have the lock in between.
				near := b.insertAt(now+rng.Int64N(3), now-rng.Int64N(2), false)
				b.insertAt(3*span+rng.Int64N(3*span), now, rng.IntN(2) == 0)
				if rng.IntN(2) == 0 {
					b.remove(near)
				}
				for i := range b.live {
					b.remove(i)
					break
				}
				b.checkNext()
			case Due:
				b.remove(i)
				fired++
			case None:
				b.checkNone(now)
				for i := range b.live { // more would only take longer
					if len(b.live) > many/10 {
						b.remove(i)
					}
				}
				now, _, _ = b.w.Next()
			}
			if more+fired > 20*many {
				t.Fatalf("level %d: no end", level)
			}
		}
		if more < many/portion {
			t.Fatalf("level %d: %d timers were moved in %d portions", level, many, more)
		}
	}
}

// TestEach visits every node once.
func TestEach(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed(t), 0))
	b := newBench(t, 12345)
	for range 3000 {
		b.insert(rng.Int64N(MaxTick) >> rng.IntN(48))
	}
	seen := map[uint32]bool{}
	b.w.Each(func(i uint32, n *slab.Node) {
		if seen[i] || n != b.s.Node(i) {
			t.Fatalf("node %d was visited twice, or with another's node", i)
		}
		seen[i] = true
	})
	if len(seen) != 3000 {
		t.Fatalf("%d nodes visited", len(seen))
	}
}
