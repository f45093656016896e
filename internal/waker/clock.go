package waker

import (
	"time"

	"github.com/detent-go/detent/internal/rt"
)

// Clock is a clock that deadlines can be counted on.
type Clock uint8

const (
	Monotonic Clock = iota // that of rt.Now
	// Boottime is CLOCK_BOOTTIME: the nanoseconds since the system was started,
	// those too for which it was suspended. Linux only.
	Boottime
	// Realtime is the wall clock, in nanoseconds since 1970, and 0 before. It can
	// be set, forward and back.
	Realtime
)

// Reader returns a function that reads the clock, and says as [rt.Now] does whether
// the calling goroutine is in a synctest bubble, where the reading means nothing.
// The error, where the clock cannot be read, wraps errors.ErrUnsupported if that
// is for good.
func (c Clock) Reader() (func() (ns int64, bubbled bool), error) {
	switch c {
	case Monotonic:
		return rt.Now, nil
	case Realtime:
		return readReal, nil
	default:
		return bootReader()
	}
}

func readReal() (ns int64, bubbled bool) {
	t := time.Now()
	return max(t.UnixNano(), 0), t == t.Round(0)
}

// offsetTries is how many pairs of readings a difference between two clocks is
// taken from.
const offsetTries = 8

// WallOffset returns the distance of the wall clock from one that nobody sets,
// which changes when the wall clock is set, and hardly otherwise. That other clock
// is CLOCK_BOOTTIME where there is one, so that the time that the system was
// suspended for does not count as set. It must not be called in a bubble.
func WallOffset() int64 {
	read, err := bootReader()
	if err != nil {
		read = rt.Now
	}
	best, offset := int64(never), int64(0)
	for range offsetTries {
		before, _ := read()
		wall := time.Now().UnixNano() // Before 1970, too: one that stands seems to be set.
		after, _ := read()
		if d := after - before; d < best {
			best, offset = d, wall-before-d/2
		}
	}
	return offset
}
