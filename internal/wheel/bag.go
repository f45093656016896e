package wheel

import "github.com/detent-go/detent/internal/slab"

// blockLen is the number of nodes in a block: with two links, 256 bytes.
const blockLen = 62

// block is a part of a slot's contents.
type block struct {
	nodes      [blockLen]uint32
	prev, next uint32 // numbers of blocks; 0: none. next links free blocks, too.
}

// bag is the contents of a slot: the indices of its nodes, in a chain of blocks.
// It is an array rather than a list through the nodes because the nodes of a
// slot lie anywhere in memory: moving them all, and firing them all, then loads
// many nodes at the same time, where a list has to wait for each to find the
// next. Each node knows its block (Pos) and its place there (Off).
//
// Nodes are in order of filing, except that one which is taken out of the
// middle leaves its place to the last.
type bag struct {
	n           uint32 // number of nodes
	first, last uint32 // numbers of blocks, when n is not 0
	from, to    uint16 // place of the first node in first, and after the last node in last
}

const (
	poolBits = 6
	poolSize = 1 << poolBits
)

// blocks allocates blocks. Number 0 is none.
type blocks struct {
	pools []*[poolSize]block
	free  uint32 // free blocks, linked by next
	made  uint32 // blocks that have been in use, number 0 included
}

func (b *blocks) at(i uint32) *block { return &b.pools[i>>poolBits][i&(poolSize-1)] }

func (b *blocks) get() (uint32, *block) {
	if i := b.free; i != 0 {
		bl := b.at(i)
		b.free = bl.next
		return i, bl
	}
	b.made = max(b.made, 1)
	if b.made>>poolBits == uint32(len(b.pools)) {
		b.pools = append(b.pools, new([poolSize]block))
	}
	i := b.made
	b.made++
	return i, b.at(i)
}

func (b *blocks) put(i uint32, bl *block) {
	bl.next = b.free
	b.free = i
}

// add puts node n, with index i, at the end of the bag.
func (w *Wheel) add(g *bag, i uint32, n *slab.Node) {
	var last *block
	switch {
	case g.n == 0:
		g.last, last = w.blocks.get()
		g.first, g.from, g.to = g.last, 0, 0
	case g.to == blockLen:
		num, bl := w.blocks.get()
		w.blocks.at(g.last).next = num
		bl.prev = g.last
		g.last, last, g.to = num, bl, 0
	default:
		last = w.blocks.at(g.last)
	}
	last.nodes[g.to] = i
	n.Pos, n.Off = g.last, uint32(g.to)
	g.to++
	g.n++
}

// head returns the index of the first node of a bag that is not empty.
func (w *Wheel) head(g *bag) uint32 { return w.blocks.at(g.first).nodes[g.from] }

// take takes node n out of the bag.
func (w *Wheel) take(g *bag, n *slab.Node) {
	g.n--
	if n.Pos == g.first && n.Off == uint32(g.from) {
		g.from++
		if g.n == 0 {
			w.blocks.put(g.first, w.blocks.at(g.first))
		} else if g.from == blockLen {
			bl := w.blocks.at(g.first)
			next := bl.next
			w.blocks.put(g.first, bl)
			g.first, g.from = next, 0
		}
		return
	}
	last := w.blocks.at(g.last)
	g.to--
	if moved := last.nodes[g.to]; n.Pos != g.last || n.Off != uint32(g.to) {
		w.blocks.at(n.Pos).nodes[n.Off] = moved
		m := w.s.Node(moved)
		m.Pos, m.Off = n.Pos, n.Off
	}
	if g.to == 0 {
		num := g.last
		g.last, g.to = last.prev, blockLen
		w.blocks.put(num, last)
	}
}

// ahead returns the indices of up to max nodes from the first on, as far as they
// stand in its block, and loads the nodes: all at once, before the caller needs
// one after the other.
func (w *Wheel) ahead(g *bag, max int) []uint32 {
	end := blockLen
	if g.first == g.last {
		end = int(g.to)
	}
	nodes := w.blocks.at(g.first).nodes[g.from:min(end, int(g.from)+max)]
	var sum int64
	for _, i := range nodes {
		sum += w.s.Node(i).Tick
	}
	w.loaded = sum
	return nodes
}
