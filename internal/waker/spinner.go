package waker

import "sync/atomic"

// The margin of a Spinner, in nanoseconds.
const (
	// SpinLeast and SpinMost bound it. A wake-up that is later than SpinMost is
	// no reason to spin longer: nobody can afford to spin for those.
	SpinLeast = int64(5_000)
	SpinMost  = int64(250_000)

	// spinGuard is what the margin is greater than the wake-up that it was
	// learnt from, and spinDecay the number of wake-ups in which it loses
	// all but a third of its distance from the usual ones.
	spinGuard = int64(5_000)
	spinDecay = 1 << 11
)

// Spinner knows how far ahead of a deadline to stop sleeping, in order to be
// awake and spinning when it passes.
//
// It learns from by how much wake-ups are late. One that is later than the margin
// raises it to that lateness and spinGuard more, unless it is later than SpinMost. One that is
// not lowers it, by the difference divided by spinDecay. So the margin stays near
// the greatest lateness of the last spinDecay wake-ups, and some 2 to 5 in a thousand
// come after it.
//
// It is safe for concurrent use. Where two learn at the same time, one may have
// learnt in vain.
type Spinner struct {
	excess atomic.Int64 // the margin, less SpinLeast
	spun   atomic.Int64
}

// Margin returns the margin.
func (s *Spinner) Margin() int64 { return SpinLeast + s.excess.Load() }

// Learn takes note of a wake-up that was late by so many nanoseconds.
func (s *Spinner) Learn(late int64) {
	m := s.Margin()
	switch {
	case late > SpinMost:
		return
	case late+spinGuard > m:
		m = min(late+spinGuard, SpinMost)
	default:
		// Rounded up, so that it gets all the way down.
		m = max(m-(m-late-spinGuard+spinDecay-1)/spinDecay, SpinLeast)
	}
	s.excess.Store(m - SpinLeast)
}

// Spun counts a spin of so many nanoseconds.
func (s *Spinner) Spun(ns int64) { s.spun.Add(ns) }

// Total returns the sum of all spins.
func (s *Spinner) Total() int64 { return s.spun.Load() }
