package timer

import (
	"iter"
	"time"

	"github.com/detent-go/detent/internal/hist"
)

// Stats counts what the timers of a [Service] have done since it was made.
// Timers made in a synctest bubble are not counted.
type Stats struct {
	Started uint64 // timers, tickers, sleeps and contexts started; a Reset of one that had ended starts it anew
	Stopped uint64 // pending timers stopped, or collected
	Reset   uint64 // pending timers reset
	Fired   uint64 // expiries: callbacks begun, sends, ticks, sleeps ended
	Pending uint64 // timers that wait now
	Wakeups uint64 // times that the service was woken by the system or the Go runtime

	// Lateness is by how much timers fired after their deadlines, as of the
	// moment that the engine came to them.
	Lateness Histogram

	// Blame is Lateness split by its causes. Those of a [Queue] have none: its
	// values are late because the timers are that wake it, which its service blames, and
	// because its handler is slow.
	Blame Blame

	// Waker names what wakes the service for precise timers: "timerfd", or
	// "runtime timer" where there is none, or none yet: before the first timer
	// that wants one; "lane" for one made by NewLane.
	Waker string
	// WakerErr is why no better waker could be made, or nil. Where file
	// descriptors have run out it is tried again, a second later at the earliest.
	// For a lane, it is what could not be set for the thread that took over after
	// a callback had ended its goroutine.
	WakerErr error
	// BlameErr is why kernel and scheduler are not told apart although
	// [Options].Blame asks for it, or nil.
	BlameErr error

	// Spun is for how long the service has spun until deadlines passed, where
	// it was asked to: CPU time, unless the system had others run meanwhile. See
	// [LaneOptions].Spin and [Service.WithSpin].
	Spun time.Duration

	// Kept is for how long a lane has kept its P while it waited, and others queued
	// for one: see NewLane.
	Kept time.Duration
}

// Stats returns the counts. They are always on: a few plain increments under a
// lock that is held anyway. Stats locks the shards in turn, and copies 16 KB for
// each: it is for every second rather than for every request.
func (s *Service) Stats() Stats {
	g := s.e.group.Stats()
	return Stats{
		Started: g.Started, Stopped: g.Stopped, Reset: g.Reset,
		Fired: g.Fired, Pending: g.Pending, Wakeups: g.Wakeups,
		Lateness: Histogram{&g.Lateness},
		Blame:    newBlame(&g.Blame),
		Waker:    g.Waker.String(), WakerErr: g.WakerErr, BlameErr: g.BlameErr,
		Spun: time.Duration(g.Spun) + time.Duration(s.e.spinner.Total()),
		Kept: time.Duration(g.Kept),
	}
}

// Histogram is a distribution of durations in logarithmic buckets, 8 to each
// power of two of nanoseconds. The zero Histogram is empty. A Histogram does not
// change.
type Histogram struct{ h *hist.Hist }

// Count returns the number of values.
func (h Histogram) Count() uint64 {
	if h.h == nil {
		return 0
	}
	return h.h.Count
}

// Sum returns the sum of all values.
func (h Histogram) Sum() time.Duration {
	if h.h == nil {
		return 0
	}
	return time.Duration(h.h.Sum)
}

// Max returns the greatest value, exactly.
func (h Histogram) Max() time.Duration {
	if h.h == nil {
		return 0
	}
	return time.Duration(h.h.Max)
}

// Quantile returns an upper bound of the value below which the fraction q, from
// 0 to 1, of all values lie: at most an eighth more than it. It returns 0 for an
// empty histogram.
func (h Histogram) Quantile(q float64) time.Duration {
	if h.h == nil {
		return 0
	}
	return time.Duration(h.h.Quantile(q))
}

// Buckets returns the buckets that are not empty, in order: the greatest value
// that falls into each, and the number of values that did.
func (h Histogram) Buckets() iter.Seq2[time.Duration, uint64] {
	return func(yield func(time.Duration, uint64) bool) {
		if h.h == nil {
			return
		}
		for b, n := range h.h.Counts {
			if n > 0 && !yield(time.Duration(hist.Upper(b)), n) {
				return
			}
		}
	}
}
