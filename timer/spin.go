package timer

import (
	"github.com/detent-go/detent/internal/rt"
	"github.com/detent-go/detent/internal/shard"
)

// WithSpin returns a service that shares everything with s, as [Service.WithSlack]
// does, but whose sleeps (Sleep, SleepUntil, and those with a context) end short of
// their deadlines, exactly whatever the slack, and spin the rest on the caller's
// goroutine: late by a microsecond or less where otherwise they are late by some
// tens. Other timers, and virtual time, are not affected. It allocates a little: make it once and keep
// it.
//
// # The margin
//
// By how much a sleep falls short, the service learns from by how much its sleeps
// are late. The margin is 5 us at first. A sleep that is later than the margin,
// less 5 us, raises it to that lateness and 5 us more; any other lowers it by the
// 2048th part of the difference. So it stays near the greatest lateness of the last
// two thousand sleeps, and is forgotten as fast. It is never less than 5 us, nor
// more than 250 us: sleeps that are even later than that, on a busy machine, are
// late, and nobody spins longer for them.
//
// # What it costs
//
// CPU time: the margin for each sleep, less what the sleep is late by. On a machine
// whose sleeps are mostly 40 us late, and 100 us now and then, that is 60 us:
// 6 % of a CPU for a loop of 1 kHz. [Stats].Spun counts it. While it spins the
// goroutine neither yields nor makes a system call; the Go scheduler can preempt it,
// as any that computes.
func (s *Service) WithSpin() *Service {
	v := *s // Its timers have their places with s, and the same slack.
	v.spin = true
	return &v
}

// sleepSpinning is sleep for a service that spins.
func (s *Service) sleepSpinning(done, changed <-chan struct{}, st *shard.Timer, now int64, op string) sleepEnd {
	if s.e.group.Closed() {
		return refused(op)
	}
	sp := &s.e.spinner
	end := st.Deadline
	for {
		margin := sp.Margin()
		if short := end - margin; short > now {
			st.Deadline, st.Grid = short, shard.Exact
			if e := s.block(done, changed, st, now, op); e != sleepOver {
				return e
			}
			now, _ = s.e.group.Now()
			if now >= short { // and the clock has not been set back
				sp.Learn(now - short)
			}
		}
		// A wall clock that has been set back may be far from the end again.
		began, e := s.spunAt(now), sleepOver
		for now < end && end-now <= 2*margin && e == sleepOver {
			select {
			case <-done: // It may be nil, as may changed.
				e = sleepCanceled
			case <-changed:
				e = sleepChanged
			default:
				if s.e.group.Closed() {
					e = sleepClosed
				}
			}
			now, _ = s.e.group.Now()
		}
		sp.Spun(s.spunAt(now) - began)
		if now >= end || e != sleepOver {
			return e
		}
		op = orEnd // If the service is closed by now, the sleep has begun before.
	}
}

// spunAt returns the time by which spinning is counted, which nobody sets. The
// service's is now.
func (s *Service) spunAt(now int64) int64 {
	if s.e.clock == Realtime {
		now, _ = rt.Now()
	}
	return now
}
