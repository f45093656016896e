package timer

import (
	"fmt"
	"math"
	"time"

	"github.com/detent-go/detent/internal/shard"
)

// Clock says what the durations and deadlines of a [Service] are counted on.
type Clock int

const (
	// Monotonic is the clock of package time's timers: nobody sets it, and it does
	// not count while the system is suspended. This is the default, and right for
	// nearly everything.
	Monotonic Clock = iota

	// Boottime is Monotonic, and counts while the system is suspended, too
	// (CLOCK_BOOTTIME): a timeout of an hour ends an hour later, or when the system
	// resumes after that. A timer does not wake a suspended system. A time with a
	// monotonic reading is, as a deadline, as far away as that says when it is given.
	// A ticker drops the ticks that it has slept through; an [Interval] that is not
	// aligned goes by Monotonic all the same.
	//
	// It is there on Linux, but not in a build with the tag detent_portable; [New]
	// fails elsewhere. Reading the clock makes a timer some 25 nanoseconds more
	// expensive to start than a Monotonic one (go test -bench Clock in this package).
	Boottime

	// Realtime is the wall clock: a timer fires when the clock comes to a time of
	// day, or is set to it or beyond, and never before. Where the clock is set
	// forward, timers fire so much sooner; where it is set back, so much later: also
	// those that were started with a duration. That the clock is slewed makes no
	// difference. The monotonic reading of a deadline does not count.
	//
	// A ticker keeps to its schedule on the wall clock: where the clock is set
	// forward, it drops the ticks in between; where it is set back, the next tick is
	// the first of the schedule from there on, at most a period away, and times that
	// have been ticked come again. An [Interval] goes by monotonic time whatever the
	// clock, unless it is aligned.
	//
	// On Linux the kernel tells that the clock has been set, and timers that have
	// come to be due fire at once, as late as others. On other systems, and in a
	// build with the tag detent_portable, a service with pending timers looks at the
	// clock every second: the timers are late by a second at most. Nothing polls
	// otherwise.
	//
	// Each timer takes time that grows with the logarithm of their number, whatever
	// its slack, and the values of a [Queue] are exact. [Stats].Lateness and Blame
	// count from the deadline on the wall clock, by which that is passed when it is
	// set forward.
	Realtime
)

// String returns the clock's name.
func (c Clock) String() string {
	switch c {
	case Monotonic:
		return "Monotonic"
	case Boottime:
		return "Boottime"
	case Realtime:
		return "Realtime"
	default:
		return fmt.Sprintf("Clock(%d)", int(c))
	}
}

// open makes the group of shards.
func (e *engine) open(o *Options) (err error) {
	c := shard.Config{Shards: o.Shards, Inline: o.Callbacks == Inline, Blame: o.Blame}
	switch o.Clock {
	case Boottime:
		e.group, err = shard.NewGroupOn(shard.Boottime, shard.OnMove{}, c)
	case Realtime:
		e.group, err = shard.NewGroupOn(shard.Realtime, shard.OnMove{Set: o.OnClockSet, Moved: e.followers.tell}, c)
	default:
		e.group = shard.NewGroup(c)
	}
	if err != nil {
		return fmt.Errorf("timer: Options.Clock is %v: %w", o.Clock, err)
	}
	return nil
}

// Now returns the current time of the service's clock: that of time.Now, for most
// services; without a monotonic reading for [Realtime]; and virtual for a [Manual]
// service.
func (s *Service) Now() time.Time {
	switch {
	case s.e.plain():
		return time.Now()
	case s.e.clock == Realtime:
		return time.Now().Round(0)
	default:
		return s.e.group.Time()
	}
}

// plain reports whether the engine's clock is that of package rt.
func (e *engine) plain() bool { return e.clock == Monotonic && !e.group.Manual() }

// timeOf returns the time of the service's clock that t stands for. All that
// takes a deadline as a time.Time goes through here. In a synctest bubble, where
// the clock means nothing, neither does the result, unless time is virtual.
//
// On the monotonic clock, a time with a monotonic reading stands for that, exactly.
// One without is as far away as the wall clock says now.
func (s *Service) timeOf(t time.Time) int64 {
	switch {
	case s.e.plain():
		if at, ok := monotonicOf(t); ok {
			return at
		}
	case s.e.clock == Realtime:
		return wallOf(t)
	case s.e.group.Manual():
		return s.e.group.TimeOf(t)
	}
	d := time.Until(t) // Taken before now is, lest the sum be early.
	now, _ := s.e.group.Now()
	return deadline(d, now)
}

// wallOf returns t in nanoseconds since 1970, as far as an int64 has room for it and
// not below 0.
func wallOf(t time.Time) int64 {
	switch {
	case t.Before(time.Unix(0, 0)):
		return 0
	case t.After(time.Unix(0, math.MaxInt64)):
		return math.MaxInt64
	default:
		return t.UnixNano()
	}
}

// timeAt returns the time.Time of a time of the service's clock, with a monotonic
// reading if that is the clock.
func (s *Service) timeAt(ns int64) time.Time {
	switch {
	case s.e.plain():
		return monotonicAt(ns)
	case s.e.clock == Realtime:
		return time.Unix(0, ns)
	case s.e.group.Manual():
		return s.e.group.TimeAt(ns)
	}
	now, _ := s.e.group.Now()
	return time.Now().Add(time.Duration(ns - now))
}
