package timer

// How a Queue works.
//
// # Structure
//
// A queue has a shard for each shard of its service, with a lock, a wheel and a
// heap of its own, made of the same parts as package shard: nodes of 32 bytes in
// a slab, filed by deadline and grid in the wheel, or in the heap if exact.
// What it leaves out is what makes a timer of a Service cost more: a callback,
// an object that stands for the timer, and the node's own lock.
//
// Beside each chunk of nodes are two arrays of its length: generations, a byte
// each, and values. Nodes and generations hold no pointers, and a chunk of values
// only if T does. The collector's work is then a matter of the number of chunks;
// so a shard that has many takes them 8 at a time, in one piece of memory. With 10
// million pending a GC marks and sweeps some 4,000 objects.
//
// To end the generation in a node takes an atomic operation, for the sake of
// those who change a node without the shard lock; nobody does here. So the byte
// beside it counts the timers that the node has been, and only when it comes
// round to 0 does the slab's generation end. The bytes of a chunk that has gone
// live on in the first ones of the next chunk there (queueCore.first).
//
// # Waking
//
// A queue shard with a handler has one timer, of the service's shard of the same
// number, that fires when the queue shard has something to do: it is a user of
// the service like any other, so it is woken as precisely as its deadlines ask
// for, by whatever the service is woken by. The timer is reset when a deadline is
// filed that is earlier than what it is set to, and after each delivery; a queue
// of timeouts that rarely expire hardly ever touches it.
//
// # Ground rules
//
//   - mu is the shard lock of package slab, and guards all fields below it. It is
//     held pinned, where the build pins, for a bounded amount of work: never while
//     the handler runs, memory is allocated, or anything blocks. Nobody holds two
//     of them.
//   - The service's shard lock is never taken with mu held: a pinned goroutine
//     must not wait for it. Who has changed armed sets the timer after releasing
//     mu, one at a time (arming), and looks then whether it has changed again
//     (rearm). So the timer always ends up set to armed, or sooner.
//   - armed never lies after what is needed, except while noArm is set: then
//     either there is no timer, or somebody is delivering, who looks for the next
//     deadline when he clears noArm, under the same lock hold.
//   - Only who has set draining calls the handler and touches batch; only who has
//     set arming touches wake.

import (
	"math"
	"sync"
	"time"

	"github.com/detent-go/detent/internal/heap"
	"github.com/detent-go/detent/internal/hist"
	"github.com/detent-go/detent/internal/rt"
	"github.com/detent-go/detent/internal/shard"
	"github.com/detent-go/detent/internal/slab"
	"github.com/detent-go/detent/internal/wheel"
)

// queueNever is the time of nothing armed or pending. A deadline is no later than
// the nanosecond before it, in 292 years.
const queueNever = math.MaxInt64

// queueBlock is how many chunks of nodes and values a shard takes at a time, once
// it has as many as queueBlockFrom.
const (
	queueBlock     = 8
	queueBlockFrom = 64
)

type queueGens = [slab.ChunkSize]uint8

// queueCore is what of a queue's shard does not depend on the type of values.
// See the ground rules above.
type queueCore struct {
	group  *shard.Group // constant
	bubble *queueBubble // constant; nil outside of bubbles
	auto   bool         // constant; the slack is automatic
	grid   uint8        // constant; the slack's, where it is not
	mark   uint32       // constant; of the shard's handles, less the generation

	mu       sync.Mutex
	closed   bool
	draining bool // somebody is delivering
	noArm    bool // no deadline changes armed
	wantArm  bool // armed has been changed under this hold of mu
	arming   bool // somebody is setting the timer
	rearm    bool // armed has been changed meanwhile

	nodes slab.Slab
	gens  []*queueGens // parallel to the chunks of nodes; nil where there is none
	first []uint8      // where the chunk's generations begin
	wheel *wheel.Wheel
	heap  *heap.Heap

	looks uint32 // calls of dueLocked

	// armed is what the timer is set to, or going to be, or never; armGrid is the
	// grid for it.
	armed   int64
	armGrid uint8
	clock   queueClock

	started, stopped, reset, fired, wakeups uint64
	lateness                                hist.Hist
}

func (c *queueCore) init(now int64) {
	c.wheel = wheel.New(&c.nodes, now>>shard.TickShift)
	c.heap = heap.New(&c.nodes)
	c.armed = queueNever
	c.clock.base = now
}

// lock takes the lock and pins the goroutine. It waits unpinned.
func (c *queueCore) lock() {
	rt.Pin()
	if !c.mu.TryLock() {
		c.waitLock()
	}
}

// waitLock is lock for a pinned goroutine that has to wait.
func (c *queueCore) waitLock() {
	rt.Unpin()
	c.mu.Lock()
	rt.Pin()
}

func (c *queueCore) unlock() {
	c.mu.Unlock()
	rt.Unpin()
}

// breathe lets others have the lock.
func (c *queueCore) breathe() {
	c.unlock()
	c.lock()
}

// openLocked reports whether timers can be added and reset.
func (c *queueCore) openLocked() bool { return !c.closed && !c.group.Closed() }

func (c *queueCore) pendingLocked() int {
	if c.closed {
		return 0
	}
	return int(c.started - c.stopped - c.fired)
}

// gridFor returns the grid of a timer of duration d.
func (c *queueCore) gridFor(d int64) uint8 {
	if c.auto {
		return queueGrid(shard.AutoGrid(d))
	}
	return c.grid
}

// queueGrid returns g, or Exact for a grid that is not the wheel's: a queue's
// heap is exact, since no more than a tick could be made of the slack.
func queueGrid(g uint8) uint8 {
	if g >= 64 {
		return shard.Exact
	}
	return g
}

// gridAtLocked returns the grid of a timer with the given deadline, or false if
// the clock is needed for it and cannot be read: with the automatic slack, or if
// armed has to be changed.
func (c *queueCore) gridAtLocked(at int64) (grid uint8, ok bool) {
	if !c.auto && (c.noArm || filedFor(at, c.grid) >= c.armed) {
		return c.grid, true
	}
	now, ok := c.readLocked()
	return c.gridFor(at - now), ok
}

// findLocked returns the node that h names in this shard, or nil.
func (c *queueCore) findLocked(h Handle) *slab.Node {
	at, j := int(h.index/slab.ChunkSize), h.index%slab.ChunkSize
	if at >= len(c.gens) || c.gens[at] == nil || c.mark|uint32(c.gens[at][j]) != h.mark {
		return nil
	}
	n := c.nodes.Node(h.index)
	if n.Where == 0 || wordOf(h.index, n) != h.word {
		return nil // Where the node is free, its handle has yet to be given out.
	}
	return n
}

// wordOf returns the generation in node n, at index i.
func wordOf(i uint32, n *slab.Node) uint32 { return uint32(n.Handle(i)) }

// Node.Kind of a queue's node.
const (
	kindRead    = iota // the deadline was made from a reading of the clock, or given
	kindGuessed        // it was made from a guess: see queueClock
)

// whereNoted is what Node.Where holds for a node that is noted, and not yet filed:
// see queueClock.
const whereNoted = math.MaxUint16

// placeLocked files node i, in no container, by the given deadline and grid.
func (c *queueCore) placeLocked(i uint32, n *slab.Node, deadline int64, grid uint8) {
	n.Deadline, n.Grid, n.Kind = min(deadline, queueNever-1), grid, kindRead
	c.fileLocked(i, n)
}

// fileLocked files node i by its Deadline and Grid.
func (c *queueCore) fileLocked(i uint32, n *slab.Node) {
	at, wake := filedFor(n.Deadline, n.Grid), shard.Exact
	if n.Grid == shard.Exact {
		n.Tick = 0
		c.heap.Insert(i, n, at, 0)
	} else {
		wake = wakeGrid(preciseGrid(n.Grid))
		n.Tick = at >> shard.TickShift
		c.wheel.Insert(i, n, c.clock.base>>shard.TickShift, preciseGrid(n.Grid))
	}
	if at < c.armed && !c.noArm {
		c.armed, c.armGrid, c.wantArm = at, wake, true
	}
}

// queueTick returns the tick that a timer with the given deadline and grid, not
// Exact, is filed under: the first multiple of 2^grid at whose beginning the
// deadline has passed.
func queueTick(deadline int64, grid uint8) int64 {
	const last = math.MaxInt64 >> shard.TickShift
	return min(((deadline-1)>>(shard.TickShift+grid)+1)<<grid, last)
}

// filedFor returns the time that the shard has to be woken at for a timer.
func filedFor(deadline int64, grid uint8) int64 {
	if grid == shard.Exact {
		return deadline
	}
	return queueTick(deadline, grid) << shard.TickShift
}

// resetLocked gives the pending node i a new deadline and grid. If it is filed
// no later than they ask for, it stays where it is: who finds it due there will
// find its deadline still to come, and file it anew.
func (c *queueCore) resetLocked(i uint32, n *slab.Node, deadline int64, grid uint8) {
	c.reset++
	if deadline = min(deadline, queueNever-1); c.staysLocked(n, deadline, grid) {
		n.Deadline, n.Grid, n.Kind = deadline, grid, kindRead
		return
	}
	c.removeLocked(n)
	c.placeLocked(i, n, deadline, grid)
}

// staysLocked reports whether node n can stay where it is filed.
func (c *queueCore) staysLocked(n *slab.Node, deadline int64, grid uint8) bool {
	switch n.Where {
	case whereNoted:
		return false
	case heap.Where:
		return deadline >= n.Deadline
	}
	// A place that nobody wakes for precisely does not serve a precise timer.
	return (preciseGrid(n.Grid) || !preciseGrid(grid)) && filedFor(deadline, grid)>>shard.TickShift >= n.Tick
}

// resetGuessLocked is resetLocked with a deadline by guess.
func (c *queueCore) resetGuessLocked(i uint32, n *slab.Node, d time.Duration) {
	c.reset++
	at, grid := c.guessLocked(d), c.grid
	if c.auto {
		grid = shard.Grid(int64(d) >> guessAutoShift)
	}
	if n.Where != whereNoted && !c.staysLocked(n, at, grid) {
		c.removeLocked(n)
		n.Where = whereNoted
	}
	n.Deadline, n.Grid, n.Kind = at, grid, kindGuessed
	c.noteLocked(i, n)
}

// removeLocked takes node n out of its container.
func (c *queueCore) removeLocked(n *slab.Node) {
	switch n.Where {
	case whereNoted:
		n.Where = 0 // Its notes are seen to be void.
	case heap.Where:
		c.heap.Remove(n)
	default:
		c.wheel.Remove(n)
	}
}

// dueLocked returns the index of a node that is filed as due, or 0. It returns
// true for more if it has to be called again to tell. The heap comes first, but
// now and then it is the wheel's turn, lest a handler that adds what is due at
// once keep it from ever having one.
func (c *queueCore) dueLocked(now int64) (i uint32, more bool) {
	c.looks++
	if c.looks%4 != 0 {
		if i := c.heapDueLocked(now); i != 0 {
			return i, false
		}
	}
	i, state := c.wheel.Due(now >> shard.TickShift)
	if state == wheel.None {
		return c.heapDueLocked(now), false
	}
	return i, state == wheel.More
}

func (c *queueCore) heapDueLocked(now int64) uint32 {
	if c.heap.Len() > 0 {
		if _, deadline, i := c.heap.Min(); deadline <= now {
			return i
		}
	}
	return 0
}

func (c *queueCore) addStats(sum *shard.Stats) {
	c.lock()
	defer c.unlock()
	sum.Started += c.started
	sum.Stopped += c.stopped
	sum.Reset += c.reset
	sum.Fired += c.fired
	sum.Pending += uint64(c.pendingLocked())
	sum.Wakeups += c.wakeups
	sum.Lateness.Add(&c.lateness)
}
