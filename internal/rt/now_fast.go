//go:build !detent_portable

package rt

import (
	"time"
	"unsafe"
)

// base is started with a wall clock that reads the year 2157, if odd.
//
// Outside of bubbles time.Since looks at the monotonic readings alone, and gives
// the time since the program started. Inside a bubble time.Now is fake and has
// no monotonic reading; time.Since then compares the wall clocks, and gives minus
// a century and a half, and what is not from 0 to mostUptime at any rate, but for
// a bubble whose clock stands at 2157 to 2167. So one comparison tells.
var base, odd = oddBase()

// mostUptime is more than a program runs, in nanoseconds.
const mostUptime = int64(10 * 365 * 24 * time.Hour)

// Layout of the first word of a time.Time that has a monotonic reading: a bit
// that says so, 33 bits of seconds since 1885, 30 bits of nanoseconds.
const (
	hasMonotonic = 1 << 63
	mostSeconds  = (1<<33 - 1) << 30
)

// oddBase returns started with the greatest wall clock reading that there is,
// or unchanged and false if a time.Time is not laid out as it was.
func oddBase() (time.Time, bool) {
	t := started
	words := (*[2]uint64)(unsafe.Pointer(&t))
	if unsafe.Sizeof(t) < unsafe.Sizeof(*words) || words[0]&hasMonotonic == 0 {
		return started, false
	}
	words[0] |= mostSeconds
	// Equal monotonic readings, and the wall clock of the year 2157.
	if t.Sub(started) != 0 || t.Round(0).UTC().Year() != 2157 {
		return started, false
	}
	return t, true
}

// Now returns the nanoseconds of monotonic time since the program started, and
// whether the calling goroutine is inside a testing/synctest bubble, where the
// reading means nothing. It is safe for concurrent use.
func Now() (ns int64, bubbled bool) {
	ns = int64(time.Since(base))
	if odd {
		return ns, uint64(ns) > uint64(mostUptime)
	}
	return ns, isBubbled()
}
