package rt

import (
	"sync/atomic"
	"time"
)

// base is the instant that [Now] counts from. It is set when the program
// starts, outside every bubble, so it has a monotonic reading.
var base = time.Now()

// verified is a reading of Now that isBubbled has found to be real.
var verified atomic.Int64

// verifiedFor is how far from a verified reading another one is taken to be
// real without a closer look, in nanoseconds.
const verifiedFor = int64(time.Second)

// Now returns the nanoseconds of monotonic time since the program started, and
// whether the calling goroutine is inside a testing/synctest bubble, where the
// reading means nothing. It is safe for concurrent use.
//
// Inside a bubble time.Now is fake: it carries no monotonic reading, so
// time.Since falls back to the wall clocks, and the fake one starts at the
// year 2000. The result is then a negative quarter of a century, or anything at
// all once the bubble's clock has been moved on. So a reading near one that has
// been verified is real, and every other one is verified first. What remains is
// a bubble whose fake clock stands within a second of the real one.
func Now() (ns int64, bubbled bool) {
	ns = int64(time.Since(base))
	if uint64(ns-verified.Load()+verifiedFor) < uint64(2*verifiedFor) {
		return ns, false
	}
	return ns, verify(ns)
}

// verify tells whether the goroutine is bubbled, the slow way, and remembers ns
// where it is not.
func verify(ns int64) bool {
	// Only a time without a monotonic reading equals itself rounded, and only
	// inside a bubble does time.Now return such a time.
	if t := time.Now(); t == t.Round(0) {
		return true
	}
	verified.Store(ns)
	return false
}

// AtTime returns the time.Time, with wall and monotonic parts, at which Now was
// ns. Its wall part is that of the program's start plus ns: a later step of the
// wall clock does not show in it.
func AtTime(ns int64) time.Time { return base.Add(time.Duration(ns)) }
