// Package slab keeps the nodes of a shard's timers: 32 bytes each, without
// pointers, in chunks, named by a [Handle] of index and generation.
//
// # Structure
//
// A node is the engine's record of one pending timer. Wheel and heap link
// nodes by index, never by pointer, so the collector has nothing to trace: it
// skips a chunk of nodes whole, however many timers are pending. What a timer
// refers to (a callback, a channel, a value) is kept by the slab's owner in
// arrays of its own, parallel to the chunks.
//
// A freed node gets a new generation. A handle whose generation is not the
// node's names a timer that has fired or been stopped: using it is harmless.
// The generation has 31 bits; a node that has used them all is retired rather
// than reused, so a handle never comes to name another timer.
//
// A chunk whose nodes are all free goes back to the collector once the slab has
// a few spare ones; its generation is remembered for the chunk that takes its
// place.
//
// # Ground rules
//
// The owner has a lock, here called the shard lock, and holds it for every
// method except [Slab.Lookup]. Each node has a lock of its own, one bit of its
// word, for those who push a deadline back without the shard lock. A field of
// [Node] is read under any one of the locks that it names, and written under
// all of them. Order: shard lock, then node lock. Nobody holds two node locks.
// A node lock is held for a few instructions, by a pinned goroutine where the
// build pins, and never while anything else is called.
//
// A node that is free, or allocated and not yet known outside the shard lock,
// needs no node lock: no valid handle to it exists.
package slab

import (
	"runtime"
	"sync/atomic"

	"github.com/detent-go/detent/internal/rt"
)

const (
	chunkBits = 10
	// ChunkSize is the number of nodes in a chunk.
	ChunkSize = 1 << chunkBits
	chunkMask = ChunkSize - 1

	// spareChunks is how many wholly free chunks the slab keeps for the next
	// timers before it lets chunks go.
	spareChunks = 4
)

// Bits of a node's word and of the lower half of a handle.
const (
	wordLocked = 1      // the node lock is held
	wordGen    = 1 << 1 // one generation
)

// Handle names one timer: the node's index in the upper 32 bits, the node's
// unlocked word in the lower. The zero Handle names none.
type Handle uint64

// Index returns the index of the node.
func (h Handle) Index() uint32 { return uint32(h >> 32) }

func (h Handle) word() uint32 { return uint32(h) }

// Node is one pending timer. See the package's ground rules for its locks.
type Node struct {
	// Deadline is when the timer should fire, in the owner's nanoseconds.
	Deadline int64 // node lock
	// Tick is the wheel tick that the node is filed under, 0 in the heap. It
	// never lies after the tick that Deadline and Grid give.
	Tick int64 // shard and node lock

	// Pos and Off are the node's place in its container: see wheel and heap.
	// Pos links free nodes.
	Pos, Off uint32 // shard lock

	word atomic.Uint32 // generation, and the node lock

	// Where is the container that the node is filed in: see wheel and heap.
	Where uint16 // shard lock
	// Grid is the binary logarithm of the ticks that the timer may be rounded
	// up to, or the owner's mark for an exact one.
	Grid uint8 // node lock
	// Kind is the owner's: what to do when the node is due.
	Kind uint8 // shard lock
}

// Chunk is ChunkSize nodes.
type Chunk struct {
	nodes [ChunkSize]Node
}

// chunkInfo is what the slab knows of the chunk at one place. Shard lock.
type chunkInfo struct {
	free    uint32 // first node of the free list, linked by Pos; 0: none
	fresh   uint32 // nodes from here on have never been allocated
	used    uint32 // allocated or retired nodes
	gen     uint32 // the word that a fresh node starts with
	listed  bool   // stands in Slab.open
	dropped bool   // its chunk has been let go
}

// Slab is a growing set of nodes. The zero Slab is empty and ready. Index 0 is
// never allocated and stands for "none".
type Slab struct {
	chunks []*Chunk    // shard lock
	info   []chunkInfo // shard lock; as long as chunks
	open   []uint32    // shard lock; a stack of chunks that may have a free node
	cur    uint32      // shard lock; the chunk to allocate from
	gone   []uint32    // shard lock; places whose chunk has been dropped
	spare  int         // shard lock; chunks without a used node
	used   int         // shard lock; allocated nodes

	// dir is chunks again, for Lookup. Elements are written under the shard
	// lock. It is replaced, never shrunk, when it is too short.
	dir atomic.Pointer[[]atomic.Pointer[Chunk]]
}

// Len returns the number of allocated nodes.
func (s *Slab) Len() int { return s.used }

// Chunks returns the number of places for chunks, dropped ones included. A
// node's index divided by ChunkSize is less.
func (s *Slab) Chunks() int { return len(s.chunks) }

// Node returns the node at index i, which must be allocated.
func (s *Slab) Node(i uint32) *Node {
	return &s.chunks[i>>chunkBits].nodes[i&chunkMask]
}

// Handle returns the handle of the allocated node at index i.
func (s *Slab) Handle(i uint32) Handle { return s.Node(i).Handle(i) }

// Handle returns the handle of allocated node n, at index i.
func (n *Node) Handle(i uint32) Handle {
	return Handle(i)<<32 | Handle(n.word.Load()&^wordLocked)
}

// Current reports whether n, which [Slab.Lookup] has returned for h, is still
// the node that h names, and allocated.
func (n *Node) Current(h Handle) bool { return n.word.Load()&^wordLocked == h.word() }

// Lookup returns the node that h names, or nil where its chunk is gone. It
// needs no lock. The node may be free or another timer's by now: take its lock
// with [Node.TryLock], which tells.
func (s *Slab) Lookup(h Handle) *Node {
	d := s.dir.Load()
	c := int(h.Index() >> chunkBits)
	if d == nil || c >= len(*d) {
		return nil
	}
	ch := (*d)[c].Load()
	if ch == nil {
		return nil
	}
	return &ch.nodes[h.Index()&chunkMask]
}

// Current reports whether h names an allocated node.
func (s *Slab) Current(h Handle) bool {
	n := s.Lookup(h)
	return n != nil && n.Current(h)
}

// TryLock takes the node lock if the node is still the one that h names and
// nobody holds its lock.
func (n *Node) TryLock(h Handle) bool {
	return n.word.CompareAndSwap(h.word(), h.word()|wordLocked)
}

// Lock takes the node lock of an allocated node. Shard lock: the generation
// cannot change meanwhile, and other holders are quick.
func (n *Node) Lock() {
	for spins := 0; ; spins++ {
		w := n.word.Load() &^ wordLocked
		if n.word.CompareAndSwap(w, w|wordLocked) {
			return
		}
		pause(spins)
	}
}

// Unlock releases the node lock.
func (n *Node) Unlock() { n.word.Store(n.word.Load() &^ wordLocked) }

// Full reports whether Alloc would fail for want of a chunk.
func (s *Slab) Full() bool {
	for {
		if s.cur < uint32(len(s.info)) {
			c := &s.info[s.cur]
			if !c.dropped && (c.free != 0 || c.fresh < ChunkSize) {
				return false
			}
		}
		if len(s.open) == 0 {
			return true
		}
		s.cur = s.open[len(s.open)-1]
		s.open = s.open[:len(s.open)-1]
		s.info[s.cur].listed = false
	}
}

// Grow gives the slab another chunk, and returns the chunk's place. The chunk
// is made by the caller, without the lock: it is large, and making it may have
// to help the collector.
func (s *Slab) Grow(ch *Chunk) int {
	at := len(s.chunks)
	if n := len(s.gone); n > 0 {
		at = int(s.gone[n-1])
		s.gone = s.gone[:n-1]
	} else {
		s.chunks = append(s.chunks, nil)
		s.info = append(s.info, chunkInfo{gen: wordGen})
	}
	c := &s.info[at]
	*c = chunkInfo{gen: c.gen, listed: c.listed}
	if at == 0 {
		c.fresh = 1                     // Index 0 means none,
		ch.nodes[0].word.Store(wordGen) // and the zero Handle is never current.
	}
	s.chunks[at] = ch
	s.publish(at, ch)
	s.spare++
	s.list(uint32(at))
	return at
}

// publish makes the chunk at the given place visible to Lookup.
func (s *Slab) publish(at int, ch *Chunk) {
	d := s.dir.Load()
	if d == nil || at >= len(*d) {
		grown := make([]atomic.Pointer[Chunk], max(8, 2*at))
		if d != nil {
			for i := range *d {
				grown[i].Store((*d)[i].Load())
			}
		}
		d = &grown
		defer s.dir.Store(d)
	}
	(*d)[at].Store(ch)
}

func (s *Slab) list(c uint32) {
	if !s.info[c].listed {
		s.info[c].listed = true
		s.open = append(s.open, c)
	}
}

// Alloc allocates a node and returns its index. Full must have returned false
// since the last Alloc or Grow. The
// node's fields are as its last user left them; its generation is new.
func (s *Slab) Alloc() (uint32, *Node) {
	c := &s.info[s.cur]
	ch := s.chunks[s.cur]
	if c.used == 0 {
		s.spare--
	}
	c.used++
	s.used++
	if c.free != 0 {
		i := c.free
		n := &ch.nodes[i&chunkMask]
		c.free = n.Pos
		return i, n
	}
	i := s.cur<<chunkBits | c.fresh
	n := &ch.nodes[c.fresh]
	c.fresh++
	n.word.Store(c.gen)
	return i, n
}

// End ends the generation that h names of node n, which [Slab.Lookup] has
// returned for h, and which the caller then takes out of its container and
// frees. It returns false where h is stale. From here on nobody without the
// shard lock can touch the node.
func (n *Node) End(h Handle) bool {
	for spins := 0; ; spins++ {
		if n.word.CompareAndSwap(h.word(), h.word()+wordGen) {
			return true
		}
		if !n.Current(h) {
			return false
		}
		pause(spins)
	}
}

// Invalidate is Lookup and End: it returns the node whose generation it has
// ended, or nil where h is stale.
func (s *Slab) Invalidate(h Handle) *Node {
	if n := s.Lookup(h); n != nil && n.End(h) {
		return n
	}
	return nil
}

// EndLocked ends the generation of a node whose lock the caller holds, and
// releases that lock.
func (n *Node) EndLocked() { n.word.Store(n.word.Load()&^wordLocked + wordGen) }

// Free returns the node at index i, out of every container and with its
// generation ended, to the slab. It reports the place of a chunk that has been
// let go, so that the owner can let go of what it keeps beside it, or -1.
func (s *Slab) Free(i uint32, n *Node) (dropped int) {
	s.used--
	at := i >> chunkBits
	c := &s.info[at]
	w := n.word.Load()
	if w < wordGen {
		return -1 // The generations are used up: the node is retired, and stays used.
	}
	n.Pos = c.free
	c.free = i
	c.used--
	if at != s.cur {
		s.list(at)
	}
	if c.used == 0 {
		s.spare++
		if s.spare > spareChunks+len(s.chunks)/64 && at != s.cur {
			s.drop(at)
			return int(at)
		}
	}
	return -1
}

// drop lets the chunk at the given place go. None of its nodes is allocated, so
// no handle is current; one that is stale finds no chunk, or in the place's next
// chunk a generation that it never had.
func (s *Slab) drop(at uint32) {
	c := &s.info[at]
	c.dropped = true
	for k := range s.chunks[at].nodes {
		c.gen = max(c.gen, s.chunks[at].nodes[k].word.Load())
	}
	s.gone = append(s.gone, at)
	s.chunks[at] = nil
	(*s.dir.Load())[at].Store(nil)
	s.spare--
}

// Clear lets go of all nodes, allocated or not. All handles are stale then, and
// the slab is not used again but for Lookup and Current.
func (s *Slab) Clear() {
	s.dir.Store(nil)
	s.chunks, s.info, s.open, s.gone = nil, nil, nil, nil
	s.cur, s.spare, s.used = 0, 0, 0
}

// pause waits for the holder of a node lock, which holds it for some ten
// instructions. In a build that pins, the holder runs on another P and this
// goroutine, pinned itself, must not call the scheduler; in one that does not,
// the holder may be waiting for this very P.
func pause(spins int) {
	if !rt.Pinned && spins >= 16 {
		runtime.Gosched()
	}
}
