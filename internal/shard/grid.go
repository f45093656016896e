package shard

import (
	"math"
	"math/bits"

	"github.com/detent-go/detent/internal/slab"
)

// TickShift is the binary logarithm of the wheel's tick in nanoseconds: 2^16 ns,
// 65.5 us. The wheel does not tick, so a fine tick costs nothing while timers
// with the same slack share a coarser grid; it lets timers of 67 ms and more
// into the wheel by their automatic slack.
const TickShift = 16

const tick = int64(1) << TickShift

// A grid says how much later than its deadline a timer may fire. Up to
// heapGrid it is the binary logarithm of a number of ticks: the timer is filed
// in the wheel, under a multiple of that number. From heapGrid on the timer is
// filed in the heap, and may be 2^(grid-heapGrid) nanoseconds late; one with
// the grid Exact may not be late at all.
const (
	heapGrid = uint8(128)
	Exact    = uint8(math.MaxUint8)
)

// urgentGrid is the coarsest grid whose timers are armed with the timerfd too:
// 2^5 ticks, 2 ms. To coarser ones the millisecond that the backstop may be
// late matters less than the system call.
const urgentGrid = 5

// urgent reports whether timers of the grid are armed with the timerfd.
func urgent(grid uint8) bool { return grid >= heapGrid || grid <= urgentGrid }

// autoGridMost is how much of its slack an automatic grid takes at once, if
// there is as much: 2^20 ns, 1.05 ms. With it a timer fires about as late as
// package time's would, which waits in whole milliseconds, and wakes the process
// about as often.
const autoGridMost = int64(1) << 20

// Grid returns the grid of a timer that may be slack nanoseconds late: the
// greatest power of two that fits. Timers of the same grid share wake-ups.
func Grid(slack int64) uint8 {
	switch {
	case slack <= 0:
		return Exact
	case slack < tick:
		return heapGrid + uint8(bits.Len64(uint64(slack))-1)
	default:
		return uint8(bits.Len64(uint64(slack)) - 1 - TickShift)
	}
}

// AutoGrid returns the grid of a timer of the given duration with automatic
// slack, which is a thousandth (1/1024) of the duration. Of that the grid takes
// an eighth, or autoGridMost if that is more: enough for a timer of ten minutes
// to share its wake-up with a thousand others of its kind, and still no later
// than a timer of package time would be.
func AutoGrid(d int64) uint8 {
	return Grid(max(d>>13, min(d>>10, autoGridMost)))
}

// heapSlack returns by how many nanoseconds a timer with a grid of the heap may
// be late.
func heapSlack(grid uint8) uint32 {
	if grid == Exact {
		return 0
	}
	return 1 << (grid - heapGrid)
}

// maxTick is the last tick that begins within an int64 of nanoseconds. A
// deadline after it is filed there, 292 years away.
const maxTick = math.MaxInt64 >> TickShift

// tickOf returns the tick, a multiple of 2^grid, at whose beginning the
// deadline, which is not negative, has passed. The grid is one of the wheel's.
func tickOf(deadline int64, grid uint8) int64 {
	return min(((deadline-1)>>(TickShift+grid)+1)<<grid, maxTick)
}

// limitOf returns when a timer with the deadline and grid should fire at the
// latest: what it is filed under.
func limitOf(deadline int64, grid uint8) int64 {
	if grid >= heapGrid {
		return saturate(deadline, int64(heapSlack(grid)))
	}
	return tickOf(deadline, grid) << TickShift
}

// fileLocked files node i by its Deadline and Grid, and returns the time that
// the shard has to be woken at for it, and whether precisely so. Either no
// handle to the node is known yet, or the caller holds the node lock.
func (s *Shard) fileLocked(i uint32, n *slab.Node, now int64) (at int64, precise bool) {
	at = limitOf(n.Deadline, n.Grid)
	if n.Grid >= heapGrid || s.steps {
		n.Tick = 0
		at = max(at, n.Deadline) // A limit of the wheel's grids ends at maxTick.
		s.heap.Insert(i, n, at, uint32(min(at-n.Deadline, math.MaxUint32)))
		return at, true
	}
	n.Tick = at >> TickShift
	precise = s.urgent(n.Grid)
	s.wheel.Insert(i, n, now>>TickShift, precise)
	return at, precise
}
