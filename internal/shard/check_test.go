package shard

import (
	"testing"

	"github.com/detent-go/detent/internal/heap"
	"github.com/detent-go/detent/internal/slab"
	"github.com/detent-go/detent/internal/wheel"
)

// checkShard compares what a shard's parts hold with one another: every
// allocated node is filed once, in the place that its Where says, no later than
// its limit, and has a target. It returns the nodes.
func checkShard(t testing.TB, s *Shard) map[uint32]bool {
	t.Helper()
	s.Lock()
	defer s.Unlock()
	if s.closed {
		return nil
	}
	seen := map[uint32]bool{}
	visit := func(inHeap bool) func(uint32, *slab.Node) {
		return func(i uint32, n *slab.Node) {
			if seen[i] || n != s.nodes.Node(i) {
				t.Fatalf("node %d is filed twice, or is another one", i)
			}
			seen[i] = true
			if (n.Where == heap.Where) != inHeap || !inHeap && n.Where < wheel.FirstWhere {
				t.Fatalf("node %d: Where is %d, in the heap %v", i, n.Where, inHeap)
			}
			if a := s.actionLocked(i); a.f == nil && a.t == nil {
				t.Fatalf("node %d has no target", i)
			}
			if Kind(n.Kind) == Tick && s.payloads[i/slab.ChunkSize].periods[i%slab.ChunkSize] <= 0 {
				t.Fatalf("node %d ticks without a period", i)
			}
			switch due := limit(n.Deadline, n.Grid); {
			case inHeap && n.Tick != 0:
				t.Fatalf("node %d has tick %d in the heap", i, n.Tick)
			case !inHeap && n.Tick > due>>TickShift:
				t.Fatalf("node %d is filed under tick %d, its limit is %d", i, n.Tick, due)
			}
		}
	}
	s.heap.Each(visit(true))
	if len(seen) != s.heap.Len() {
		t.Fatalf("the heap has %d nodes, its Len is %d", len(seen), s.heap.Len())
	}
	if s.heap.Len() > 0 {
		_, deadline, i := s.heap.Min()
		if n := s.nodes.Node(i); n.Deadline < deadline && limit(n.Deadline, n.Grid) < deadline {
			t.Fatalf("node %d is filed under %d, after its limit", i, deadline)
		}
	}
	s.wheel.Each(visit(false))
	if len(seen) != s.heap.Len()+s.wheel.Len() || len(seen) != s.nodes.Len() {
		t.Fatalf("%d nodes filed; heap %d, wheel %d, slab %d", len(seen), s.heap.Len(), s.wheel.Len(), s.nodes.Len())
	}
	// What a timer did that is not pending is not kept from the collector.
	kept := 0
	for at, p := range s.payloads {
		for k := range slab.ChunkSize {
			if p.funcs != nil && p.funcs[k] != nil || p.targets != nil && p.targets[k] != nil {
				kept++
				if !seen[uint32(at*slab.ChunkSize+k)] {
					t.Fatalf("free node %d has a function or target", at*slab.ChunkSize+k)
				}
			}
		}
	}
	if kept != len(seen) {
		t.Fatalf("%d functions and targets for %d nodes", kept, len(seen))
	}
	return seen
}
