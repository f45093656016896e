package heap

import (
	"math"
	"math/rand/v2"
	"os"
	"slices"
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

// limits is what a node is filed under.
type limits struct {
	limit int64
	slack uint32
}

// bench is a heap with the nodes that it needs, and the model: what every node
// in it is filed under.
type bench struct {
	t    testing.TB
	s    slab.Slab
	h    *Heap
	live map[uint32]limits
	// sorted is the limits in order.
	sorted []int64
	// nodes is the keys of live, for a random choice; at tells where each stands.
	nodes []uint32
	at    map[uint32]int
}

func newBench(t testing.TB) *bench {
	b := &bench{t: t, live: map[uint32]limits{}, at: map[uint32]int{}}
	b.h = New(&b.s)
	return b
}

func (b *bench) insert(limit int64) uint32 { return b.insertWith(limit, 0) }

func (b *bench) insertWith(limit int64, slack uint32) uint32 {
	for b.s.Full() {
		b.s.Grow(new(slab.Chunk))
	}
	i, n := b.s.Alloc()
	b.h.Insert(i, n, limit, slack)
	n.Deadline = -1 // may be pushed back at any time: not the heap's business
	b.live[i] = limits{limit, slack}
	at, _ := slices.BinarySearch(b.sorted, limit)
	b.sorted = slices.Insert(b.sorted, at, limit)
	b.at[i] = len(b.nodes)
	b.nodes = append(b.nodes, i)
	return i
}

func (b *bench) remove(i uint32) {
	n := b.s.Node(i)
	if n.Where != Where {
		b.t.Fatalf("Where of node %d is %d", i, n.Where)
	}
	b.h.Remove(n)
	if n.Where != 0 {
		b.t.Fatalf("Where of removed node %d is %d", i, n.Where)
	}
	at, ok := slices.BinarySearch(b.sorted, b.live[i].limit)
	if !ok {
		b.t.Fatalf("node %d is not in the model", i)
	}
	b.sorted = slices.Delete(b.sorted, at, at+1)
	delete(b.live, i)
	last := b.nodes[len(b.nodes)-1]
	b.nodes[b.at[i]], b.at[last] = last, b.at[i]
	b.nodes = b.nodes[:len(b.nodes)-1]
	delete(b.at, i)
	b.s.Invalidate(b.s.Handle(i))
	b.s.Free(i, n)
}

// checkMin compares Len and Min with the model.
func (b *bench) checkMin() {
	b.t.Helper()
	if b.h.Len() != len(b.live) {
		b.t.Fatalf("Len = %d, want %d", b.h.Len(), len(b.live))
	}
	if len(b.sorted) == 0 {
		return
	}
	limit, deadline, i := b.h.Min()
	if want := b.sorted[0]; limit != want || b.live[i].limit != want {
		b.t.Fatalf("Min = %d, node %d of %+v; want limit %d", limit, i, b.live[i], want)
	}
	if want := limit - int64(b.live[i].slack); deadline != want {
		b.t.Fatalf("Min = %d with deadline %d, want %d", limit, deadline, want)
	}
}

// checkInvariants looks at every entry: the order, the links back, each node
// once, and blocks for all entries and not for many more.
func (b *bench) checkInvariants() {
	b.t.Helper()
	b.checkMin()
	seen := map[uint32]bool{}
	for p := root; p < b.h.end(); p++ {
		e := b.h.at(p)
		n := b.s.Node(e.index)
		filed, ok := b.live[e.index]
		switch {
		case !ok || seen[e.index]:
			b.t.Fatalf("place %d: node %d is not in the heap, or twice", p, e.index)
		case filed != limits{e.limit, e.slack}:
			b.t.Fatalf("place %d: %+v, want %+v", p, *e, filed)
		case n.Pos != uint32(p) || n.Where != Where:
			b.t.Fatalf("place %d: node %d says place %d, Where %d", p, e.index, n.Pos, n.Where)
		}
		seen[e.index] = true
		for c := 4*p - 8; c < min(4*p-4, b.h.end()); c++ {
			if limit := b.h.at(c).limit; limit < e.limit {
				b.t.Fatalf("place %d has limit %d, its child %d an earlier one, %d", p, e.limit, c, limit)
			}
		}
	}
	if len(seen) != len(b.live) {
		b.t.Fatalf("%d entries, want %d", len(seen), len(b.live))
	}
	need := (b.h.end() + blockMask) >> blockBits
	if have := len(b.h.blocks); have < need && len(b.live) > 0 || have > need+2 {
		b.t.Fatalf("%d blocks for %d entries", have, len(b.live))
	}
}

// drain takes all out in order.
func (b *bench) drain() {
	b.t.Helper()
	for before := int64(math.MinInt64); b.h.Len() > 0; {
		b.checkMin()
		limit, _, i := b.h.Min()
		if limit < before {
			b.t.Fatalf("limit %d came out after %d", limit, before)
		}
		before = limit
		b.remove(i)
	}
	b.checkInvariants()
}

// TestSizes fills and empties heaps of every small size, in orders that move
// entries as far as possible, and takes out each place once.
func TestSizes(t *testing.T) {
	orders := map[string]func(k, n int) int64{
		"rising":  func(k, _ int) int64 { return int64(k) },
		"falling": func(k, n int) int64 { return int64(n - k) },
		"equal":   func(int, int) int64 { return 7 },
		"mixed":   func(k, n int) int64 { return int64(k * 7919 % (n + 1)) },
	}
	for name, order := range orders {
		for n := range 60 {
			for victim := range n {
				b := newBench(t)
				for k := range n {
					b.insert(order(k, n))
				}
				b.remove(b.h.at(root + victim).index)
				b.checkInvariants()
				if t.Failed() {
					t.Fatalf("%s, %d entries, without place %d", name, n, root+victim)
				}
				if victim%16 == 0 {
					b.drain()
				}
			}
		}
	}
}

// TestBlocks grows over several blocks and shrinks again: blocks come one by
// one and are let go.
func TestBlocks(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed(t), 0))
	const many = 5*blockSize + 17
	b := newBench(t)
	for k := range many {
		b.insert(rng.Int64())
		if k%997 == 0 {
			b.checkInvariants()
		}
	}
	b.checkInvariants()
	if n := len(b.h.blocks); n < 6 {
		t.Fatalf("%d blocks for %d entries", n, many)
	}
	b.drain()
	if n := len(b.h.blocks); n > 2 {
		t.Fatalf("%d blocks are kept by an empty heap", n)
	}
	// At the border of a block.
	for k := range blockSize + 8 {
		b.insert(int64(-k))
	}
	for range 20 {
		for range 12 {
			b.remove(b.nodes[len(b.nodes)-1])
			b.checkInvariants()
		}
		for range 12 {
			b.insert(rng.Int64N(1000) - 500)
			b.checkInvariants()
		}
	}
}

// TestExtremes orders the first and the last limits there are.
func TestExtremes(t *testing.T) {
	b := newBench(t)
	for _, d := range []int64{math.MaxInt64, 0, math.MaxInt64 - 1, 1, math.MaxInt64, math.MinInt64, 0} {
		b.insert(d)
		b.checkInvariants()
	}
	b.drain()
}

// TestEach visits every node once.
func TestEach(t *testing.T) {
	b := newBench(t)
	for k := range 2 * blockSize {
		b.insert(int64(k * 31 % 1000))
	}
	seen := map[uint32]bool{}
	b.h.Each(func(i uint32, n *slab.Node) {
		if seen[i] || n != b.s.Node(i) {
			t.Fatalf("node %d was visited twice, or with another's node", i)
		}
		seen[i] = true
	})
	if len(seen) != len(b.live) {
		t.Fatalf("%d nodes visited, want %d", len(seen), len(b.live))
	}
}

// play runs a script of operations, four bytes each.
func play(t testing.TB, data []byte) {
	b := newBench(t)
	for step := 0; len(data) >= 4; step++ {
		op, x := data[0], int64(data[1])<<16|int64(data[2])<<8|int64(data[3])
		data = data[4:]
		switch {
		case op < 100:
			b.insertWith(x, uint32(op)<<9)
		case op < 130: // equal ones, and orders that rise and fall
			for k := range x & 63 {
				b.insert(x>>8 + k*int64(op%3-1))
			}
		case op < 200 && len(b.nodes) > 0:
			b.remove(b.nodes[int(x)%len(b.nodes)])
		case op < 250 && len(b.nodes) > 0:
			_, _, i := b.h.Min()
			b.remove(i)
		case len(b.nodes) > 0 && x%16 == 0:
			b.drain()
		}
		if len(b.nodes) < 100 || step%64 == 0 {
			b.checkInvariants()
		} else {
			b.checkMin()
		}
	}
	b.drain()
}

func TestModel(t *testing.T) {
	seed := seed(t)
	scripts := 40
	if testing.Short() {
		scripts = 20
	}
	for k := range scripts {
		rng := rand.New(rand.NewPCG(seed, uint64(k)))
		data := make([]byte, 64<<(k%8))
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		play(t, data)
	}
}

func FuzzHeap(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 210, 0, 0, 0})
	f.Add([]byte{100, 1, 0, 63, 101, 1, 0, 63, 102, 1, 0, 63, 150, 0, 0, 9})
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 4096 {
			t.Skip("long scripts are the random test's")
		}
		play(t, data)
	})
}
