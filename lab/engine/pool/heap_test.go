package pool

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// checkHeap looks at a heap: each node is where it believes to be, and not due before
// its parent.
func checkHeap(h heap) error {
	for i, n := range h {
		if n.at != i {
			return fmt.Errorf("the node at %d believes to be at %d", i, n.at)
		}
		if parent := (i - 1) / arity; i > 0 && h[parent].when > n.when {
			return fmt.Errorf("the node at %d is due at %d, its parent at %d", i, n.when, h[parent].when)
		}
	}
	return nil
}

// FuzzHeap makes of each byte a push, a removal of any node, or that the first one
// moves away from the root as a ticker's does, and compares with a list.
func FuzzHeap(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0, 4, 8, 12, 1, 1, 2, 3})
	r := rand.New(rand.NewPCG(1, 2))
	random := make([]byte, 2000)
	for i := range random {
		random[i] = byte(r.Uint32())
	}
	f.Add(random)
	f.Fuzz(func(t *testing.T, script []byte) {
		var h heap
		var list []*node
		for i, b := range script {
			arg := int(b / 4)
			switch op := b % 4; {
			case op < 2 || len(h) == 0:
				n := &node{when: int64(arg)}
				h.push(n)
				list = append(list, n)
			case op == 2:
				n := h[arg%len(h)]
				h.remove(n.at)
				if n.at != -1 {
					t.Fatalf("after byte %d: a removed node believes to be at %d", i, n.at)
				}
				list = slices.DeleteFunc(list, func(m *node) bool { return m == n })
			default:
				h[0].when += int64(arg)
				h.down(0)
			}
			if err := checkHeap(h); err != nil || len(h) != len(list) {
				t.Fatalf("after byte %d: %d nodes, want %d; %v", i, len(h), len(list), err)
			}
		}
		slices.SortFunc(list, func(a, b *node) int { return int(a.when - b.when) })
		for i, n := range list {
			if h[0].when != n.when {
				t.Fatalf("number %d to come is due at %d, want %d", i, h[0].when, n.when)
			}
			h.remove(0)
		}
		if len(h) != 0 {
			t.Fatalf("%d nodes are left", len(h))
		}
	})
}
