package wheel

import (
	"math/rand/v2"
	"testing"
)

// TestModel compares the wheel with a table: random timers at random distances,
// stopped, moved, and turned for, each fires at its own tick and no other.
func TestModel(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	distance := func() int64 {
		// Near and far alike, and around the borders of the rings.
		d := int64(1) << r.IntN(34)
		return max(0, d+int64(r.IntN(5))-2+r.Int64N(d))
	}
	for range 20 {
		var w wheel
		w.init(r.Int64N(1 << 40))
		model := map[*node]int64{} // node to tick
		for range 30_000 {
			switch r.IntN(5) {
			case 0:
				n := &node{tick: w.cur - 1 + distance()}
				w.file(n)
				model[n] = max(n.tick, w.cur)
			case 1:
				for n := range model { // any
					if !n.linked() {
						t.Fatal("a pending node is in no slot")
					}
					w.remove(n)
					delete(model, n)
					if r.IntN(2) == 0 {
						n.tick = w.cur + distance()
						w.file(n)
						model[n] = n.tick
					}
					break
				}
			default:
				for range r.IntN(100) {
					var due list
					tick := w.cur
					w.turn(&due)
					for n := due.first(); n != nil; n = due.first() {
						if model[n] != tick {
							t.Fatalf("fired at tick %d, want %d", tick, model[n])
						}
						w.remove(n)
						delete(model, n)
					}
				}
				for n, tick := range model {
					if tick < w.cur {
						t.Fatalf("tick %d has passed, and the node of %d is pending", w.cur-1, n.tick)
					}
					break
				}
			}
			if w.n != len(model) {
				t.Fatalf("%d nodes filed, want %d", w.n, len(model))
			}
		}
		// To the end, or far at least: all must come up.
		for range 1 << 18 {
			var due list
			tick := w.cur
			w.turn(&due)
			for n := due.first(); n != nil; n = due.first() {
				if model[n] != tick {
					t.Fatalf("fired at tick %d, want %d", tick, model[n])
				}
				w.remove(n)
				delete(model, n)
			}
		}
		for n, tick := range model {
			if tick < w.cur {
				t.Fatalf("tick %d has passed, and the node of %d is pending", w.cur-1, n.tick)
			}
		}
		w.clear()
		if w.n != 0 {
			t.Fatalf("%d nodes after clear", w.n)
		}
	}
}
