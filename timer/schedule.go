package timer

import (
	"math"
	"time"
)

// moment is a point of time, of both clocks.
type moment struct {
	mono time.Duration // since the schedule's base; does not step
	wall time.Time     // without a monotonic reading; may be set
}

// schedule is when the ticks of an [Interval] come. It takes the present moment as
// an argument.
//
// A schedule that is not aligned goes by the monotonic clock: each tick is a
// period after the one before, whatever happens. An aligned one has the wall time of
// the next tick, and moves it when the clock is set, which it finds out by
// looking (see look).
type schedule struct {
	period  time.Duration
	missed  MissedTicks
	aligned bool
	offset  time.Duration // of aligned ticks

	next    time.Duration // the next tick's time, if not aligned
	taken   time.Duration // the last one's
	skipped int64         // ticks passed over before the next one

	// Of an aligned schedule:
	nextAt time.Time // the next tick's time
	last   time.Time // the last one's; zero before it
	seen   moment    // when look was last called
}

const (
	// alignedLook is within what time an aligned schedule notices that the wall
	// clock has been set.
	alignedLook = time.Minute

	// delayTolerance is how late a tick may be taken, or an eighth of the period,
	// before Delay puts the schedule off.
	delayTolerance = 5 * time.Millisecond
)

// begin begins the schedule, now.
func (s *schedule) begin(now moment, period time.Duration, immediately bool) {
	s.period, s.skipped, s.seen = period, 0, now
	s.last = time.Time{}
	if s.aligned {
		s.nextAt = now.wall
		if !immediately {
			s.nextAt = s.align(now.wall)
		}
		return
	}
	s.next = now.mono
	if !immediately {
		s.next = saturated(now.mono, period)
	}
}

// due reports whether the next tick's time has come.
func (s *schedule) due(now moment) bool { return s.wait(now) <= 0 }

// wait returns after what time to look at the schedule again: 0 or less if the next
// tick's has come.
func (s *schedule) wait(now moment) time.Duration {
	if !s.aligned {
		return s.next - now.mono
	}
	s.look(now)
	return min(s.nextAt.Sub(now.wall), alignedLook)
}

// take returns the tick that is due, and sets the next one.
func (s *schedule) take(now moment) Ticked {
	t := Ticked{At: s.nextAt, Missed: s.skipped}
	if s.aligned {
		s.last = s.nextAt
		s.nextAt = s.align(s.last)
		s.skipped = 0
		if s.missed == Skip {
			s.passOver(s.align(now.wall))
		}
		return t
	}
	s.taken = s.next
	late := now.mono - s.next
	passed := late / s.period
	switch {
	case s.missed == Burst:
		passed = 0
	case s.missed == Skip:
		s.next += passed * s.period
	case late > min(s.period/8, delayTolerance):
		s.next = now.mono
	}
	s.next = saturated(s.next, s.period)
	s.skipped = int64(passed)
	return t
}

// align returns the first time of an aligned tick after t.
func (s *schedule) align(t time.Time) time.Time {
	return t.Add(-s.offset).Truncate(s.period).Add(s.offset).Add(s.period)
}

// passOver moves the next aligned tick to a later time.
func (s *schedule) passOver(to time.Time) {
	if d := to.Sub(s.nextAt); d > 0 {
		s.skipped += int64(d / s.period)
		s.nextAt = to
	}
}

// leastStep is how far the wall clock has to be ahead for it to have been set. The two
// readings of a moment may be apart, where somebody is interrupted between them.
const leastStep = 10 * time.Millisecond

// look follows the wall clock of an aligned schedule, if it has been set.
func (s *schedule) look(now moment) {
	step := now.wall.Sub(s.seen.wall) - (now.mono - s.seen.mono)
	s.seen = now
	switch to := s.nextAt.Sub(now.wall); {
	case to <= 0 && step >= max(s.period, leastStep):
		// Set forward: what has been jumped over comes once.
		s.passOver(s.align(now.wall).Add(-s.period))
	case to > s.period:
		// Set back.
		s.nextAt, s.skipped = s.align(now.wall), 0
	default:
		return
	}
	if s.nextAt.Equal(s.last) {
		s.nextAt = s.nextAt.Add(s.period)
	}
}

// saturated returns a+b, or the greatest duration where that overflows. Neither is
// negative, or their sum does not overflow.
func saturated(a, b time.Duration) time.Duration {
	if b > 0 && a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
