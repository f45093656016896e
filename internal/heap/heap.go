// Package heap is a 4-ary min-heap of timers over the nodes of a slab, to the
// nanosecond: for the few timers that must be precise.
//
// A timer has a deadline, before which it must not fire, and a limit a little
// later, at which it should at the latest. The heap is ordered by limit, so the
// first limit is when somebody has to wake up; and whoever does fires all at the
// top whose deadlines have passed. (Linux's hrtimers have such a range too.)
//
// # Structure
//
// The heap is an array of 16-byte entries, each a limit, its distance from the
// deadline, and a node's index.
// The root stands at place 3, and the children of place p at 4p-8 to 4p-5: four
// siblings begin at a multiple of four and share a cache line, so a step down
// looks at one line, and there are half as many steps as in a binary heap.
// Limits stand in the array, not in the nodes, so ordering touches no node but
// those that move. Each node knows its place (Node.Pos), which makes
// removal O(log n).
//
// Insert and remove cost up to log4(n) moves; a limit later than its parent's,
// the usual one, costs none to insert.
//
// The array is made of blocks, so that growing to millions never copies it:
// that would hold the shard lock for milliseconds.
//
// # Ground rules
//
// The heap has no lock, clock or goroutine: its owner holds the shard lock of
// package slab. The deadline that a timer is filed under is the heap's own; the
// node's may have been pushed back since.
package heap

import "github.com/detent-go/detent/internal/slab"

// Where is what Node.Where holds for a node in the heap.
const Where = 1

const (
	root = 3

	blockBits = 10
	blockSize = 1 << blockBits // 16 KiB
	blockMask = blockSize - 1
)

type entry struct {
	limit int64
	slack uint32 // limit - deadline
	index uint32
}

// Heap holds timers ordered by deadline. Use [New] to make one.
type Heap struct {
	s      *slab.Slab
	blocks []*[blockSize]entry
	n      int
}

// New returns an empty heap for nodes of s.
func New(s *slab.Slab) *Heap { return &Heap{s: s} }

// Len returns the number of timers in the heap.
func (h *Heap) Len() int { return h.n }

func (h *Heap) at(p int) *entry { return &h.blocks[p>>blockBits][p&blockMask] }

// end is the place after the last one in use.
func (h *Heap) end() int { return h.n + root }

// Insert files node n, at index i of the slab, under the limit, which lies slack
// after the timer's deadline.
func (h *Heap) Insert(i uint32, n *slab.Node, limit int64, slack uint32) {
	n.Where = Where
	if h.end()>>blockBits == len(h.blocks) {
		h.blocks = append(h.blocks, new([blockSize]entry))
	}
	h.n++
	h.up(h.end()-1, entry{limit, slack, i})
}

// Min returns the earliest limit, and the deadline and the index of the node
// that is filed under it. The heap must not be empty.
func (h *Heap) Min() (limit, deadline int64, i uint32) {
	e := h.at(root)
	return e.limit, e.limit - int64(e.slack), e.index
}

// Remove takes node n, whose Where must be [Where], out of the heap.
func (h *Heap) Remove(n *slab.Node) {
	n.Where = 0
	h.n--
	p, last := int(n.Pos), h.end()
	if p != last {
		if moved := *h.at(last); !h.up(p, moved) {
			h.down(p, moved)
		}
	}
	// Blocks beyond the next one are let go.
	if keep := h.end()>>blockBits + 2; len(h.blocks) > keep {
		h.blocks[keep] = nil
		h.blocks = h.blocks[:keep]
	}
}

// up puts x where it belongs on the way from place p to the root, and reports
// whether that is not p itself.
func (h *Heap) up(p int, x entry) bool {
	start := p
	for p > root {
		parent := p>>2 + 2
		e := *h.at(parent)
		if e.limit <= x.limit {
			break
		}
		h.set(p, e)
		p = parent
	}
	h.set(p, x)
	return p != start
}

// down puts x where it belongs on the way from place p to the leaves.
func (h *Heap) down(p int, x entry) {
	for {
		c := 4*p - 8
		k := min(4, h.end()-c)
		if k <= 0 {
			break
		}
		// Siblings never straddle blocks: both come in multiples of four.
		block := h.blocks[c>>blockBits]
		at := c & blockMask
		least := at
		for j := at + 1; j < at+k; j++ {
			if block[j].limit < block[least].limit {
				least = j
			}
		}
		if block[least].limit >= x.limit {
			break
		}
		h.set(p, block[least])
		p = c + least - at
	}
	h.set(p, x)
}

func (h *Heap) set(p int, x entry) {
	*h.at(p) = x
	h.s.Node(x.index).Pos = uint32(p)
}

// Each calls f for every node in the heap, in no particular order. f must not
// change the heap.
func (h *Heap) Each(f func(i uint32, n *slab.Node)) {
	for p := root; p < h.end(); p++ {
		i := h.at(p).index
		f(i, h.s.Node(i))
	}
}
