package wheel

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/detent-go/detent/internal/slab"
)

// seed returns the seed of a random test: that of the environment variable
// DETENT_SEED, to repeat a run, or a new one. It is printed when the test fails.
func seed(t testing.TB) uint64 {
	s := uint64(time.Now().UnixNano())
	if v := os.Getenv("DETENT_SEED"); v != "" {
		var err error
		if s, err = strconv.ParseUint(v, 10, 64); err != nil {
			t.Fatalf("DETENT_SEED: %v", err)
		}
	}
	t.Logf("to repeat: DETENT_SEED=%d", s)
	return s
}

// digitOf returns the base-64 digit number l of a tick, the slow way.
func digitOf(tick int64, l int) int64 {
	for range l {
		tick /= slots
	}
	return tick % slots
}

// placeOf returns the slot that a timer of the given tick belongs into while
// the wheel stands at cur.
func placeOf(tick, cur int64) (level int, d int64) {
	tick = max(tick, cur)
	for l := Levels - 1; l > 0; l-- {
		if digitOf(tick, l) != digitOf(cur, l) {
			return l, digitOf(tick, l)
		}
	}
	return 0, digitOf(tick, 0)
}

// pending is what a model knows of a node.
type pending struct {
	tick   int64
	urgent bool
}

// checkInvariants compares every slot of the wheel, and what the wheel notes
// about them, with the timers that should be in it.
func checkInvariants(t testing.TB, w *Wheel, live map[uint32]pending) {
	t.Helper()
	if w.Len() != len(live) {
		t.Fatalf("Len = %d, want %d", w.Len(), len(live))
	}
	seen := 0
	for l := range w.levels {
		for d := range w.levels[l] {
			sl := &w.levels[l][d]
			bit := uint64(1) << d
			if (sl.n != 0) != (w.occupied[l]&bit != 0) {
				t.Fatalf("slot %d.%d: %d nodes, occupied %v", l, d, sl.n, w.occupied[l]&bit != 0)
			}
			if w.urgent[l]&bit != 0 && sl.n == 0 {
				t.Fatalf("slot %d.%d is urgent and empty", l, d)
			}
			num, off := sl.first, uint32(sl.from)
			for range sl.n {
				i := w.blocks.at(num).nodes[off]
				n := w.s.Node(i)
				p, ok := live[i]
				switch {
				case !ok:
					t.Fatalf("slot %d.%d holds node %d, which is not in the wheel", l, d, i)
				case n.Tick != p.tick:
					t.Fatalf("node %d has tick %d, want %d", i, n.Tick, p.tick)
				case n.Where != uint16(FirstWhere+l*slots+d):
					t.Fatalf("node %d is in slot %d.%d, its Where says %d", i, l, d, n.Where)
				case n.Pos != num || n.Off != off:
					t.Fatalf("slot %d.%d: node %d is at %d.%d, and believes to be at %d.%d", l, d, i, num, off, n.Pos, n.Off)
				case p.urgent && w.urgent[l]&bit == 0:
					t.Fatalf("slot %d.%d holds urgent node %d, and is not urgent", l, d, i)
				case l > 0 && sl.min > n.Tick:
					t.Fatalf("slot %d.%d: min %d is after tick %d of node %d", l, d, sl.min, n.Tick, i)
				}
				checkPlace(t, w, i, n, l, d)
				seen++
				if off++; off == blockLen && num != sl.last {
					next := w.blocks.at(num).next
					if w.blocks.at(next).prev != num {
						t.Fatalf("slot %d.%d: block %d follows block %d, but does not link back", l, d, next, num)
					}
					num, off = next, 0
				}
			}
			if sl.n > 0 && (num != sl.last || off != uint32(sl.to)) {
				t.Fatalf("slot %d.%d: its %d nodes end at %d.%d, want %d.%d", l, d, sl.n, num, off, sl.last, sl.to)
			}
		}
	}
	// Each node has one Where, so that no node was met twice.
	if seen != len(live) {
		t.Fatalf("%d nodes in the slots, want %d", seen, len(live))
	}
}

func checkPlace(t testing.TB, w *Wheel, i uint32, n *slab.Node, l, d int) {
	t.Helper()
	if l > 0 && int64(d) == digitOf(w.cur, l) {
		// The slot is being entered: what is left there has all digits in
		// common with cur from this level up.
		for k := l; k < Levels; k++ {
			if digitOf(n.Tick, k) != digitOf(w.cur, k) {
				t.Fatalf("node %d, tick %d, is left in slot %d.%d at cur %d", i, n.Tick, l, d, w.cur)
			}
		}
		return
	}
	if wl, wd := placeOf(n.Tick, w.cur); wl != l || wd != int64(d) {
		t.Fatalf("node %d, tick %d, is in slot %d.%d at cur %d, want %d.%d", i, n.Tick, l, d, w.cur, wl, wd)
	}
}

// bench is a wheel with the nodes that it needs.
type bench struct {
	t    testing.TB
	s    *slab.Slab
	w    *Wheel
	live map[uint32]pending
	now  int64 // the latest tick that the wheel has been told
}

func newBench(t testing.TB, tick int64) *bench {
	s := new(slab.Slab)
	return &bench{t: t, s: s, w: New(s, tick), live: map[uint32]pending{}, now: tick}
}

func (b *bench) insertAt(tick, now int64, urgent bool) uint32 {
	for b.s.Full() {
		b.s.Grow(new(slab.Chunk))
	}
	i, n := b.s.Alloc()
	n.Tick = tick
	b.w.Insert(i, n, now, urgent)
	b.live[i] = pending{tick, urgent}
	b.now = max(b.now, now)
	return i
}

func (b *bench) insert(tick int64) uint32 { return b.insertAt(tick, b.now, false) }

func (b *bench) remove(i uint32) {
	n := b.s.Node(i)
	b.w.Remove(n)
	if n.Where != 0 {
		b.t.Fatalf("Where of removed node %d is %d", i, n.Where)
	}
	delete(b.live, i)
	if b.s.Invalidate(b.s.Handle(i)) != n {
		b.t.Fatalf("node %d is not the slab's", i)
	}
	b.s.Free(i, n)
}

// step calls Due at tick now, and checks what one call may do.
func (b *bench) step(now int64) (uint32, State) {
	b.t.Helper()
	b.now = max(b.now, now)
	i, state := b.w.Due(now)
	if state == Due {
		p, ok := b.live[i]
		if !ok || p.tick > now {
			b.t.Fatalf("at tick %d Due returned node %d: in the wheel %v, tick %d", now, i, ok, p.tick)
		}
	}
	return i, state
}

// checkNone checks that Due was right to find no timer, and that its caller need
// not come back at once.
func (b *bench) checkNone(now int64) {
	b.t.Helper()
	for i, p := range b.live {
		if p.tick <= now {
			b.t.Fatalf("at tick %d Due found none, but node %d has tick %d", now, i, p.tick)
		}
	}
	if next, _, ok := b.w.Next(); ok && next <= now {
		b.t.Fatalf("nothing was due at tick %d, and Next is %d: the owner would wake for nothing", now, next)
	}
}

// drain takes out all that is due at tick now, and returns how many that was.
func (b *bench) drain(now int64) (fired int) {
	b.t.Helper()
	for calls := 0; ; calls++ {
		// A timer moves once per level at most, in portions of which only
		// the last of a slot is not full; a slot is entered for a timer's sake.
		if most := 2 * (Levels + 1) * (len(b.live) + fired + 1); calls > most {
			b.t.Fatalf("%d calls of Due for %d timers", calls, len(b.live)+fired)
		}
		i, state := b.step(now)
		switch state {
		case None:
			b.checkNone(now)
			return fired
		case Due:
			b.remove(i)
			fired++
		}
	}
}

// least returns the least tick in the wheel.
func (b *bench) least() int64 {
	least := int64(MaxTick)
	for _, p := range b.live {
		least = min(least, p.tick)
	}
	return least
}

// checkNext checks that Next is not too late, and not early without a reason.
func (b *bench) checkNext() {
	b.t.Helper()
	next, urgent, ok := b.w.Next()
	if ok != (len(b.live) > 0) {
		b.t.Fatalf("Next ok = %v with %d timers", ok, len(b.live))
	}
	if !ok {
		return
	}
	least := b.least()
	if next > max(least, b.now) {
		b.t.Fatalf("Next = %d, the least tick is %d, now is %d", next, least, b.now)
	}
	if next > b.now && next >= least && !urgent {
		// It wakes for the least timers themselves.
		for i, p := range b.live {
			if p.tick == least && p.urgent {
				b.t.Fatalf("Next = %d is not urgent, node %d of that tick is", next, i)
			}
		}
	}
}
