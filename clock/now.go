package clock

import (
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/detent-go/detent/internal/tsc"
)

// Now returns what [time.Now] returns, in half of the time or less: the wall
// clock, a monotonic reading that may be compared with those of time.Now, in
// time.Local. Times that it returns do not go backwards by their monotonic
// readings.
//
// It reads a [TSC] of its own, so it falls back as that does: in the first 20 ms
// of use, where the counter is not to be trusted, and while there are fewer than 32
// calls in half a millisecond, it takes two thirds of the time of time.Now.
//
// Both parts are within 1 us of what time.Now would have returned at the same
// moment, typically within 50 ns; where that matters, do not mix the two: a
// time.Since of a time that Now has just returned can be negative by as much.
// What [TSC.Bounded] says about the kernel's clock being steered applies here.
// When somebody sets the wall clock, by 1 us or more, Now follows within a
// millisecond.
//
// Do not use it where a testing/synctest bubble is to see its fake time, nor for
// what is done a few thousand times a second: time.Now is right there.
func Now() time.Time {
	if !tsc.Supported {
		return time.Now()
	}
	e := &wallClock.engine
	seq := e.seq.Load()
	start, span, mult := e.start.Load(), e.span.Load(), e.mult.Load()
	wall, mono := e.wall.Load(), e.mono.Load()
	if span != 0 {
		if d := tsc.Ordered() - start; d < span && e.seq.Load() == seq {
			ns := tsc.Scale(d, mult)
			return tsc.Parts{Wall: wall + uint64(ns), Mono: mono + ns, Loc: wallClock.local}.Time()
		}
	}
	return wallClock.now()
}

// wallClock is what Now reads.
var wallClock nowClock

// A nowClock adds to an engine what makes a time.Time of its readings: constants
// that turn CLOCK_MONOTONIC into the wall clock and into the runtime's monotonic
// time. The kernel slews both of its clocks alike, so the first constant changes
// only when somebody sets the wall clock, and with leap seconds. That is looked
// for whenever a line begins, and as often in kernel mode: every half millisecond
// of use, for 60 ns. (A timerfd that is cancelled when the clock is set would tell
// as well, to a goroutine, whenever that gets to run.) The second constant never
// changes.
//
// While a line is in force its wall and mono are the parts of the time at the
// line's beginning, to which a reading adds the nanoseconds since. So that this
// does not carry into the seconds, a line ends with the second at the latest.
type nowClock struct {
	engine engine

	state atomic.Uint32  // one of the constants below
	local *time.Location // the location of time.Now
	unix  atomic.Int64   // what to add to Mono to get Real, when last looked at
	look  atomic.Int64   // when to look again, by Mono

	mu     sync.Mutex // of begin and lookLocked; taken with engine.mu held
	real   interval   // what unix may be
	toMono int64      // what to add to Mono to get the runtime's monotonic time
	exact  int64      // by how much toMono may be wrong
}

const (
	fresh = iota // nothing is known yet
	ready        // local and toMono are set, engine has its hook
	never        // Now is time.Now
)

// lookAgain is for how long unix may be used, in nanoseconds.
const lookAgain = 500_000

// now is Now without a line.
func (c *nowClock) now() time.Time {
	if c.state.Load() != ready && !c.begin() {
		return time.Now()
	}
	ns, _ := c.engine.read()
	if ns >= c.look.Load() && c.mu.TryLock() {
		c.lookLocked()
		c.mu.Unlock()
	}
	wall, _, ok := tsc.WallPart(ns + c.unix.Load())
	if !ok {
		return time.Now()
	}
	return tsc.Parts{Wall: wall, Mono: ns + c.toMono, Loc: c.local}.Time()
}

// begin prepares the clock. It reports false if Now has to be time.Now: for good,
// because the layout of times is not known or the kernel's clocks are not; for
// this call, because it is made in a bubble, where there is no telling what the
// runtime's monotonic time is.
func (c *nowClock) begin() bool {
	if c.state.Load() == never {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if state := c.state.Load(); state != fresh {
		return state == ready
	}
	from := time.Now()
	if from == from.Round(0) {
		return false // a bubble
	}
	parts, ok := tsc.Split(from)
	if !ok || Mono.Source() == PackageTime || Real.Source() == PackageTime {
		c.state.Store(never)
		return false
	}
	mono := everything
	for range 64 {
		before := Mono.Nanos()
		now := parts.Mono + int64(time.Since(from))
		mono = mono.narrow(now-Mono.Nanos(), now-before)
	}
	c.local, c.toMono, c.exact = parts.Loc, mono.middle(), mono.high-mono.middle()
	c.real = everything
	for range 16 {
		c.lookLocked()
	}
	c.engine.parts = c.parts
	c.state.Store(ready)
	return true
}

// lookLocked compares the wall clock with Mono. All comparisons between two
// settings of the wall clock are of the same distance, each as exact as the two
// readings around it were close.
func (c *nowClock) lookLocked() {
	var before, wall, after int64
	for range 4 {
		before, wall, after = Mono.Nanos(), Real.Nanos(), Mono.Nanos()
		if after-before < 1000 {
			break // not interrupted
		}
	}
	low, high := wall-after, wall-before
	first := c.real == everything
	c.real = c.real.narrow(low, high)
	if c.real.low > c.real.high {
		c.real = interval{low, high} // it has been set
	}
	if unix := c.unix.Load(); first || unix < c.real.low || unix > c.real.high {
		c.unix.Store(c.real.middle())
	}
	c.look.Store(after + lookAgain)
}

var errYear = errors.New("the year is beyond what a time.Time with a monotonic reading holds")

// parts is the hook of the engine.
func (c *nowClock) parts(base int64) (wall uint64, mono, left int64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lookLocked()
	wall, left, ok := tsc.WallPart(base + c.unix.Load())
	if !ok {
		return 0, 0, 0, errYear
	}
	return wall, base + c.toMono, left, nil
}

// An interval holds a number that is not known exactly.
type interval struct{ low, high int64 }

var everything = interval{math.MinInt64, math.MaxInt64}

func (i interval) narrow(low, high int64) interval {
	return interval{max(i.low, low), min(i.high, high)}
}

func (i interval) middle() int64 { return i.low + (i.high-i.low)/2 }
