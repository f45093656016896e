package shard

import (
	"math"
	"math/bits"

	"github.com/detent-go/detent/internal/slab"
)

// TickShift is the binary logarithm of the wheel's tick in nanoseconds: 2^19 ns,
// 0.524 ms. With half of it a burst of timers wakes the shard twice as often;
// with twice of it a timer of a second fires later than package time's would.
const TickShift = 19

const tick = int64(1) << TickShift

// Exact is the grid of a timer that is filed in the heap.
const Exact = uint8(math.MaxUint8)

// urgentGrid is the coarsest grid whose timers are armed with the timerfd too:
// 4 ticks, 2 ms. To coarser ones the millisecond that the backstop may be late
// matters less than the system call.
const urgentGrid = 2

// Grid returns the grid of a timer that may be slack nanoseconds late: the
// binary logarithm of the greatest power of two of ticks that fits into the
// slack, or Exact where not even one tick does. The timer's tick is rounded up
// to a multiple of that power: timers of the same grid share wake-ups.
func Grid(slack int64) uint8 {
	if slack < tick {
		return Exact
	}
	return uint8(bits.Len64(uint64(slack)) - 1 - TickShift)
}

// AutoGrid returns the grid of a timer of the given duration with automatic
// slack, which is a thousandth (1/1024) of the duration. Of that slack the grid
// takes an eighth, but no less than a tick: enough for a timer of ten minutes
// to share its wake-up with a thousand others of its kind, and still no later
// than a timer of package time would be.
func AutoGrid(d int64) uint8 {
	if d>>10 < tick {
		return Exact
	}
	if d>>13 < tick {
		return 0
	}
	return uint8(bits.Len64(uint64(d>>13)) - 1 - TickShift)
}

// maxTick is the last tick that begins within an int64 of nanoseconds. A
// deadline after it is filed there, 292 years away.
const maxTick = math.MaxInt64 >> TickShift

// tickOf returns the tick, a multiple of 2^grid, at whose beginning the
// deadline, which is not negative, has passed. grid is not Exact.
func tickOf(deadline int64, grid uint8) int64 {
	return min(((deadline-1)>>(TickShift+grid)+1)<<grid, maxTick)
}

// fileLocked files node i by its Deadline and Grid, and returns the time that
// the shard has to be woken at for it, and whether precisely so. Either no
// handle to the node is known yet, or the caller holds the node lock.
func (s *Shard) fileLocked(i uint32, n *slab.Node, now int64) (at int64, precise bool) {
	if n.Grid == Exact {
		n.Tick = 0
		s.heap.Insert(i, n, n.Deadline)
		return n.Deadline, true
	}
	n.Tick = tickOf(n.Deadline, n.Grid)
	urgent := n.Grid <= urgentGrid
	s.wheel.Insert(i, n, now>>TickShift, urgent)
	return n.Tick << TickShift, urgent
}
