package slab

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/detent-go/detent/internal/rt"
)

// owner is a slab with its shard lock, and handles that all goroutines know of.
type owner struct {
	mu      sync.Mutex
	s       Slab
	live    []Handle // mu
	dropped int      // mu; chunks let go

	known [512]atomic.Uint64
}

func (o *owner) lock()   { o.mu.Lock(); rt.Pin() }
func (o *owner) unlock() { rt.Unpin(); o.mu.Unlock() }

// start allocates a node and makes its handle known.
func (o *owner) start(rng *rand.Rand) {
	o.lock()
	for o.s.Full() {
		o.unlock()
		ch := new(Chunk)
		o.lock()
		o.s.Grow(ch)
	}
	i, n := o.s.Alloc()
	h := o.s.Handle(i)
	n.Deadline, n.Grid = 0, 0
	n.Tick = int64(h) // what a holder of the node lock recognizes it by
	n.Kind = 1
	o.live = append(o.live, h)
	o.known[rng.IntN(len(o.known))].Store(uint64(h))
	o.unlock()
}

// end frees a random node, in either way.
func (o *owner) end(t *testing.T, rng *rand.Rand) {
	o.lock()
	defer o.unlock()
	if len(o.live) == 0 {
		return
	}
	k := rng.IntN(len(o.live))
	h := o.live[k]
	o.live[k] = o.live[len(o.live)-1]
	o.live = o.live[:len(o.live)-1]
	n := o.s.Node(h.Index())
	if rng.IntN(2) == 0 {
		n.Lock()
		n.EndLocked()
	} else if o.s.Invalidate(h) != n {
		t.Errorf("Invalidate(%x) did not find its node", h)
	}
	// Nobody else can touch the node now.
	if n.Tick != int64(h) || n.Grid != uint8(n.Deadline) {
		t.Errorf("node of handle %x: Tick %x, Deadline %d, Grid %d", h, n.Tick, n.Deadline, n.Grid)
	}
	if o.s.Free(h.Index(), n) >= 0 {
		o.dropped++
	}
}

// refile changes a node as an owner does that files it anew.
func (o *owner) refile(t *testing.T, rng *rand.Rand) {
	o.lock()
	defer o.unlock()
	if len(o.live) == 0 {
		return
	}
	h := o.live[rng.IntN(len(o.live))]
	n := o.s.Node(h.Index())
	n.Kind++
	n.Lock()
	if n.Tick != int64(h) || n.Grid != uint8(n.Deadline) {
		t.Errorf("node of handle %x: Tick %x, Deadline %d, Grid %d", h, n.Tick, n.Deadline, n.Grid)
	}
	n.Tick = 0
	n.Deadline++
	n.Grid = uint8(n.Deadline)
	n.Tick = int64(h)
	n.Unlock()
}

// push changes a node under its own lock alone, and reports whether it did.
func (o *owner) push(t *testing.T, rng *rand.Rand) bool {
	h := Handle(o.known[rng.IntN(len(o.known))].Load())
	if h == 0 {
		return false
	}
	n := o.s.Lookup(h)
	if n == nil {
		return false
	}
	rt.Pin()
	defer rt.Unpin()
	if !n.TryLock(h) {
		return false
	}
	defer n.Unlock()
	if n.Tick != int64(h) || n.Grid != uint8(n.Deadline) {
		t.Errorf("locked by handle %x: Tick %x, Deadline %d, Grid %d", h, n.Tick, n.Deadline, n.Grid)
	}
	n.Deadline += 3
	n.Grid = uint8(n.Deadline)
	return true
}

// TestConcurrent lets goroutines that have nothing but handles change nodes
// while others allocate and free them, and chunks come and go. A lock that is
// got with a handle is that of the handle's own timer.
func TestConcurrent(t *testing.T) {
	seed := seed(t)
	o := new(owner)
	rounds := 8 // up to some twelve chunks of nodes and down to none, in turn
	if testing.Short() {
		rounds = 2
	}
	var done atomic.Bool
	var pushed atomic.Int64
	var pushers, owners sync.WaitGroup
	for g := range 3 {
		pushers.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(g)))
			for n := 1; !done.Load(); n++ {
				if o.push(t, rng) {
					pushed.Add(1)
				}
				if n%256 == 0 {
					runtime.Gosched() // There may be one thread for all, as on js/wasm.
				}
			}
		})
	}
	for g := range 2 {
		owners.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(100+g)))
			for round := range rounds {
				for range 16 * ChunkSize {
					switch op := rng.IntN(8); {
					case op == 0:
						o.refile(t, rng)
					case (op < 6) == (round%2 == 0):
						o.start(rng)
					default:
						o.end(t, rng)
					}
				}
			}
		})
	}
	owners.Wait()
	done.Store(true)
	pushers.Wait()

	live := map[uint32]bool{}
	for _, h := range o.live {
		live[h.Index()] = true
		if !o.s.Current(h) {
			t.Errorf("handle %x is not current at the end", h)
		}
	}
	checkInvariants(t, &o.s, live, nil)
	t.Logf("%d pushes, %d chunks let go", pushed.Load(), o.dropped)
}

// TestNodeLockExcludes counts under one node's lock, taken in all ways, without
// any other synchronization.
func TestNodeLockExcludes(t *testing.T) {
	var mu sync.Mutex // the shard lock
	var s Slab
	i, n := alloc(&s)
	h := s.Handle(i)
	const each = 5000
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for range each {
				mu.Lock()
				rt.Pin()
				n.Lock()
				n.Deadline++
				n.Unlock()
				rt.Unpin()
				mu.Unlock()
			}
		})
		wg.Go(func() {
			for done := 0; done < each; {
				rt.Pin()
				if n.TryLock(h) {
					n.Deadline++
					n.Unlock()
					done++
				}
				rt.Unpin()
			}
		})
	}
	wg.Wait()
	if n.Deadline != 4*each {
		t.Errorf("counted to %d under the lock, want %d", n.Deadline, 4*each)
	}
}
