package slab

import (
	"testing"
)

// lastWord is the word of a node's last generation.
const lastWord = ^uint32(0) &^ wordLocked

// alloc allocates a node, in a new chunk if need be.
func alloc(s *Slab) (uint32, *Node) {
	for s.Full() { // Alloc wants to hear false from it
		s.Grow(new(Chunk))
	}
	return s.Alloc()
}

// release ends the generation of h, which must be current, and frees the node.
func release(t testing.TB, s *Slab, h Handle) (dropped int) {
	t.Helper()
	n := s.Invalidate(h)
	if n == nil {
		t.Fatalf("Invalidate(%x) = nil for a current handle", h)
	}
	return s.Free(h.Index(), n)
}

// mustBeStale fails the test unless h is harmless.
func mustBeStale(t testing.TB, s *Slab, h Handle) {
	t.Helper()
	if s.Current(h) {
		t.Fatalf("Current(%x) = true for a stale handle", h)
	}
	if n := s.Lookup(h); n != nil && n.TryLock(h) {
		t.Fatalf("TryLock(%x) = true for a stale handle", h)
	}
	if s.Invalidate(h) != nil {
		t.Fatalf("Invalidate(%x) != nil for a stale handle", h)
	}
}

func TestZeroSlab(t *testing.T) {
	var s Slab
	if !s.Full() || s.Len() != 0 || s.Chunks() != 0 {
		t.Fatalf("zero slab: Full %v, Len %d, Chunks %d", s.Full(), s.Len(), s.Chunks())
	}
	mustBeStale(t, &s, 0)
	mustBeStale(t, &s, Handle(5<<32|2))
	checkInvariants(t, &s, nil, nil)
}

// TestZeroHandle: the zero Handle names no timer, whatever is allocated.
func TestZeroHandle(t *testing.T) {
	var s Slab
	for range 3 {
		i, _ := alloc(&s)
		if i == 0 || s.Handle(i) == 0 {
			t.Fatalf("allocated node %d with handle %x", i, s.Handle(i))
		}
	}
	mustBeStale(t, &s, 0)
}

// TestHandle: a handle is current from Alloc until Invalidate, and never again.
func TestHandle(t *testing.T) {
	var s Slab
	i, n := alloc(&s)
	h := s.Handle(i)
	if !s.Current(h) || s.Lookup(h) != n || h.Index() != i {
		t.Fatalf("handle %x of node %d: Current %v, Index %d", h, i, s.Current(h), h.Index())
	}
	if got := s.Invalidate(h); got != n {
		t.Fatalf("Invalidate = %p, want %p", got, n)
	}
	mustBeStale(t, &s, h) // not yet free, but stale
	s.Free(i, n)
	mustBeStale(t, &s, h)
	j, _ := alloc(&s)
	if j != i {
		t.Fatalf("allocated node %d, want the freed %d again", j, i)
	}
	if s.Handle(j) == h {
		t.Fatalf("handle %x was given out twice", h)
	}
	mustBeStale(t, &s, h)
	if !s.Current(s.Handle(j)) {
		t.Fatal("the second handle is not current")
	}
}

// TestNodeLock: the lock excludes, belongs to one generation, and does not show
// in the handle.
func TestNodeLock(t *testing.T) {
	var s Slab
	i, n := alloc(&s)
	h := s.Handle(i)
	if !n.TryLock(h) {
		t.Fatal("TryLock of a free lock failed")
	}
	if n.TryLock(h) {
		t.Fatal("the lock was taken twice")
	}
	if s.Handle(i) != h || !s.Current(h) {
		t.Fatalf("locked: handle %x, was %x; Current %v", s.Handle(i), h, s.Current(h))
	}
	n.Unlock()
	n.Lock()
	if n.TryLock(h) {
		t.Fatal("the lock was taken twice")
	}
	n.EndLocked()
	mustBeStale(t, &s, h)
	s.Free(i, n)
	checkInvariants(t, &s, nil, nil)
	if i, n = alloc(&s); !n.TryLock(s.Handle(i)) {
		t.Fatal("EndLocked left the lock held")
	}
}

// TestRetire: a node that has used all generations is never allocated again,
// so no handle comes round.
func TestRetire(t *testing.T) {
	for name, end := range map[string]func(*Slab, *Node, Handle){
		"Invalidate": func(s *Slab, _ *Node, h Handle) { s.Invalidate(h) },
		"EndLocked":  func(_ *Slab, n *Node, _ Handle) { n.Lock(); n.EndLocked() },
	} {
		t.Run(name, func(t *testing.T) {
			var s Slab
			i, n := alloc(&s)
			n.word.Store(lastWord - wordGen)
			s.info[0].gen = lastWord - wordGen
			var old []Handle
			for range 2 { // the last but one generation and the last
				h := s.Handle(i)
				end(&s, n, h)
				old = append(old, h)
				s.Free(i, n)
				if len(old) == 1 {
					j, _ := alloc(&s)
					if j != i {
						t.Fatalf("node %d of generation %x was not reused", i, h.word())
					}
				}
			}
			if s.Len() != 0 {
				t.Fatalf("Len = %d with one retired node", s.Len())
			}
			checkInvariants(t, &s, nil, map[uint32]bool{i: true})
			live := map[uint32]bool{}
			for range 3 * ChunkSize {
				j, _ := alloc(&s)
				if j == i {
					t.Fatalf("retired node %d was allocated", i)
				}
				live[j] = true
			}
			for _, h := range old {
				mustBeStale(t, &s, h)
			}
			checkInvariants(t, &s, live, map[uint32]bool{i: true})
		})
	}
}

// TestRetiredChunk: where a chunk's nodes have used up their generations, the
// chunk that takes its place does not begin again with the first.
func TestRetiredChunk(t *testing.T) {
	var s Slab
	hs := fill(&s, (spareChunks+4)*ChunkSize)
	victim := hs[ChunkSize+5].Index() // in chunk 1
	s.Node(victim).word.Store(lastWord - wordGen)
	s.info[1].gen = lastWord - wordGen
	hs[ChunkSize+5] = s.Handle(victim)
	for _, h := range hs {
		release(t, &s, h)
	}
	dropped := !s.info[1].dropped
	for c := range s.info {
		dropped = dropped || s.info[c].dropped
	}
	if !dropped {
		t.Fatal("no chunk was let go")
	}
	retired := map[uint32]bool{}
	for round := range 4 {
		issued := fill(&s, (spareChunks+4)*ChunkSize)
		for _, h := range issued {
			if h.word() < wordGen {
				t.Fatalf("round %d: handle %x has no generation", round, h)
			}
		}
		for _, h := range hs {
			mustBeStale(t, &s, h)
		}
		for _, h := range issued {
			n := s.Invalidate(h)
			s.Free(h.Index(), n)
			if n.word.Load() < wordGen {
				retired[h.Index()] = true
			}
		}
		checkInvariants(t, &s, nil, retired)
		hs = append(hs, issued...)
	}
	if len(retired) == 0 {
		t.Fatal("no node was retired: the test does not reach the last generation")
	}
}

// fill allocates n nodes.
func fill(s *Slab, n int) []Handle {
	hs := make([]Handle, n)
	for k := range hs {
		i, _ := alloc(s)
		hs[k] = s.Handle(i)
	}
	return hs
}

// TestDrop: chunks without timers are let go beyond a few spare ones, and
// handles into them stay harmless, with no chunk in the place and with another.
func TestDrop(t *testing.T) {
	var s Slab
	const chunks = spareChunks + 8
	hs := fill(&s, chunks*ChunkSize-1) // index 0 is not allocated
	if s.Chunks() != chunks {
		t.Fatalf("%d chunks for %d nodes", s.Chunks(), len(hs))
	}
	dropped := map[int]bool{}
	for _, h := range hs {
		if at := release(t, &s, h); at >= 0 {
			if dropped[at] || at != int(h.Index()/ChunkSize) {
				t.Fatalf("freeing node %d dropped chunk %d", h.Index(), at)
			}
			dropped[at] = true
		}
	}
	checkInvariants(t, &s, nil, nil)
	if want := chunks - spareChunks - 1; len(dropped) < want {
		t.Fatalf("%d of %d free chunks were let go, want at least %d", len(dropped), chunks, want)
	}
	for _, h := range hs {
		mustBeStale(t, &s, h)
		if dropped[int(h.Index()/ChunkSize)] && s.Lookup(h) != nil {
			t.Fatalf("Lookup(%x) found a node in a dropped chunk", h)
		}
	}
	again := fill(&s, len(hs))
	if s.Chunks() != chunks {
		t.Fatalf("%d places for chunks, want the %d from before", s.Chunks(), chunks)
	}
	for _, h := range hs {
		mustBeStale(t, &s, h)
	}
	for _, h := range again {
		if !s.Current(h) {
			t.Fatalf("handle %x is not current", h)
		}
	}
}

// TestGrowUnasked grows a slab that is not full: a chunk that was let go while
// it was listed as having room, and comes back, is not listed twice.
func TestGrowUnasked(t *testing.T) {
	var s Slab
	for _, h := range fill(&s, (spareChunks+8)*ChunkSize) {
		release(t, &s, h)
	}
	for len(s.gone) > 0 {
		s.Grow(new(Chunk))
	}
	listed := map[uint32]bool{}
	for _, c := range s.open {
		if listed[c] {
			t.Fatalf("chunk %d is listed twice", c)
		}
		listed[c] = true
	}
	places, live := s.Chunks(), map[uint32]bool{}
	for range places*ChunkSize - 1 {
		i, _ := alloc(&s)
		if live[i] {
			t.Fatalf("node %d was allocated twice", i)
		}
		live[i] = true
	}
	if s.Chunks() != places {
		t.Fatalf("%d places for chunks, want %d", s.Chunks(), places)
	}
	checkInvariants(t, &s, live, nil)
}

func TestClear(t *testing.T) {
	var s Slab
	hs := fill(&s, 3*ChunkSize)
	s.Clear()
	if s.Len() != 0 {
		t.Fatalf("Len = %d after Clear", s.Len())
	}
	for _, h := range hs {
		mustBeStale(t, &s, h)
	}
}
