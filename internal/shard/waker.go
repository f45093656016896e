package shard

import (
	"errors"
	"time"
)

// Waker names what wakes a shard in time for precise timers.
type Waker uint8

// In the order of their precision.
const (
	ManualWaker  Waker = iota // only [Group.Advance]
	RuntimeWaker              // the backstop alone
	TimerfdWaker
	LaneWaker
)

// retryAfter is how long the shard waits until it tries again to make a timerfd,
// in nanoseconds. What it has run out of, file descriptors most likely, others may
// have given back by then.
const retryAfter = int64(time.Second)

func (s *Shard) wakerLocked() Waker {
	switch {
	case s.group.manual != nil:
		return ManualWaker
	case s.group.lane != nil:
		return LaneWaker
	case s.precise != nil:
		return TimerfdWaker
	default:
		return RuntimeWaker
	}
}

// failedLocked takes note of why a timerfd could not be made. Where there cannot
// be one it is left at that.
func (s *Shard) failedLocked(err error) {
	s.preciseErr = err
	if !errors.Is(err, errors.ErrUnsupported) {
		s.starting = false
		s.retryAt = s.group.clock() + retryAfter
	}
}

// retryLocked reports whether it is time to make a timerfd: where that has
// failed, not at once again.
func (s *Shard) retryLocked() bool {
	return s.preciseErr == nil || s.group.clock() >= s.retryAt
}

// retriesLocked reports whether a wake-up is to try again to make a timerfd, and sees
// to it that nobody else does: a ticker may be all that ever wakes the shard.
func (s *Shard) retriesLocked() bool {
	if s.preciseErr == nil || s.starting || s.precise != nil || s.heap.Len() == 0 && !s.wheelUrgentLocked() || !s.retryLocked() {
		return false
	}
	s.starting = true
	return true
}

// wheelUrgentLocked reports whether what comes next in the wheel wants the timerfd.
func (s *Shard) wheelUrgentLocked() bool {
	_, urgent, ok := s.wheel.Next()
	return ok && urgent
}

func (w Waker) String() string {
	switch w {
	case ManualWaker:
		return "manual"
	case RuntimeWaker:
		return "runtime timer"
	case TimerfdWaker:
		return "timerfd"
	case LaneWaker:
		return "lane"
	default:
		return "unknown"
	}
}
