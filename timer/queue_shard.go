package timer

import (
	"slices"

	"github.com/detent-go/detent/internal/shard"
	"github.com/detent-go/detent/internal/slab"
)

// queueShard is the timers of one shard of a queue, with their values.
type queueShard[T any] struct {
	queueCore
	q  *Queue[T]    // constant
	on *shard.Shard // constant; where the timer is that wakes this shard; nil in a bubble

	vals []*[slab.ChunkSize]T // mu; parallel to the chunks of nodes

	// These keep the loads of loadAheadLocked from being optimized away. Guarded
	// by mu.
	loadedVal  T
	loadedGens uint8

	// batch is what the handler is called with: of whoever has set draining.
	batch []Expired[T]

	fire func() // constant; woken
	// wake is the timer that wakes this shard: of whoever has set arming.
	wake shard.Handle
}

func newQueueShard[T any](q *Queue[T], mark uint32, on *shard.Shard, now int64) *queueShard[T] {
	s := &queueShard[T]{q: q, on: on}
	s.fire = s.woken
	s.group, s.bubble = q.svc.e.group, q.bubble
	s.mark = mark
	s.auto, s.grid = q.svc.auto, queueGrid(q.svc.grid)
	s.clock.guessMin = queueNever
	switch {
	case q.bubble != nil, q.svc.e.clock == Realtime: // The wheel cannot go back.
		s.auto, s.grid = false, shard.Exact
	case q.handler == nil, q.svc.e.clock == Boottime:
		// Nothing would make sure that a guess is put right soon; or a suspend before
		// it is would count as time that the guess was wrong by.
	case s.auto:
		s.clock.guessMin = guessMinAuto
	case s.grid != shard.Exact && s.grid >= guessGrid:
		s.grid--
		s.clock.guessMin = guessMinFixed
	}
	if s.clock.guessMin != queueNever {
		s.clock.notes = new([queueNotes]uint32)
	}
	s.noArm = q.handler == nil
	s.init(now)
	return s
}

// roomLocked makes room for one more node, and returns false if none can be
// added. It may release the lock.
func (s *queueShard[T]) roomLocked() bool {
	return s.openLocked() && (!s.nodes.Full() || s.growLocked())
}

// growLocked makes room for one more node, and returns false if the shard has
// been closed meanwhile. It releases the lock while it allocates.
func (s *queueShard[T]) growLocked() bool {
	for s.nodes.Full() {
		block := 1
		if s.nodes.Chunks() >= queueBlockFrom {
			block = queueBlock
		}
		s.unlock()
		nodes := make([]slab.Chunk, block)
		gens := make([]queueGens, block)
		vals := make([][slab.ChunkSize]T, block)
		s.lock()
		if s.closed {
			return false
		}
		if !s.nodes.Full() {
			break // Someone else has grown the slab.
		}
		for k := range block {
			at := s.nodes.Grow(&nodes[k])
			if at == len(s.vals) {
				s.vals = append(s.vals, nil)
				s.gens = append(s.gens, nil)
				s.first = append(s.first, 0)
			}
			g := &gens[k]
			for j := range g {
				g[j] = s.first[at]
			}
			s.gens[at], s.vals[at] = g, &vals[k]
		}
	}
	return true
}

// addedLocked gives the new node i its value, releases the lock, and returns
// its handle.
func (s *queueShard[T]) addedLocked(i uint32, n *slab.Node, v T) Handle {
	s.vals[i/slab.ChunkSize][i%slab.ChunkSize] = v
	h := s.handleLocked(i, n)
	s.started++
	s.unlockAndArm()
	return h
}

// handleLocked returns the handle of the pending node i.
func (s *queueShard[T]) handleLocked(i uint32, n *slab.Node) Handle {
	return Handle{i, wordOf(i, n), s.mark | uint32(s.gens[i/slab.ChunkSize][i%slab.ChunkSize])}
}

// freeLocked returns node i, which is in no container, to the slab, and ends its
// generation.
func (s *queueShard[T]) freeLocked(i uint32, n *slab.Node) {
	at, j := i/slab.ChunkSize, i%slab.ChunkSize
	var zero T
	s.vals[at][j] = zero
	g := &s.gens[at][j]
	if *g++; *g == 0 {
		n.EndLocked()
	}
	if gone := s.nodes.Free(i, n); gone >= 0 {
		s.first[gone] = slices.Max(s.gens[gone][:])
		s.gens[gone], s.vals[gone] = nil, nil
	}
}

// queueHold bounds how many values are taken under one hold of the lock, and
// queueMove is what filing a portion of timers again counts for: as in package
// shard.
const (
	queueHold = 64
	queueMove = 32
)

// takeLocked moves values that are due at the given time into the buffer, until
// that is full, the work is as much as one hold of the lock should do, or no
// more are due. It returns their number, what it has done in units of a value, and
// whether there is more to be done.
func (s *queueShard[T]) takeLocked(buf []Expired[T], now int64) (n, cost int, more bool) {
	for cost < queueHold {
		if n == len(buf) || s.closed {
			return n, cost, !s.closed
		}
		i, refiled := s.dueLocked(now)
		if refiled {
			cost += queueMove
			continue
		}
		if i == 0 {
			return n, cost, false
		}
		s.loadAheadLocked()
		cost++
		node := s.nodes.Node(i)
		s.removeLocked(node)
		if node.Deadline > now {
			s.fileLocked(i, node) // It has been reset to a later time.
			continue
		}
		buf[n] = Expired[T]{s.vals[i/slab.ChunkSize][i%slab.ChunkSize], s.handleLocked(i, node)}
		s.fired++
		s.lateness.Record(now - node.Deadline)
		s.freeLocked(i, node)
		n++
	}
	return n, cost, true
}

// loadAheadLocked loads what the next timers of the wheel need into the cache:
// the processor does so for all of them at once, where taking them one by one
// would wait for each.
func (s *queueShard[T]) loadAheadLocked() {
	if len(s.wheel.Ahead) == 0 {
		return
	}
	var gens uint8
	for _, i := range s.wheel.Ahead {
		gens += s.gens[i/slab.ChunkSize][i%slab.ChunkSize]
		s.loadedVal = s.vals[i/slab.ChunkSize][i%slab.ChunkSize]
	}
	var zero T
	s.loadedVal, s.loadedGens = zero, gens
	s.wheel.Ahead = nil
}

// close ends the shard.
func (s *queueShard[T]) close() {
	s.lock()
	s.closed = true
	s.nodes.Clear()
	s.gens, s.first, s.vals = nil, nil, nil
	s.wheel, s.heap = nil, nil
	s.clock = queueClock{guessMin: queueNever}
	s.armed = queueNever
	s.wantArm = true // for the timer to be stopped
	s.unlockAndArm()
}
