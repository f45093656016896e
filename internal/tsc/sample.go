package tsc

import (
	"math"
	"slices"
)

// A Sample is one reading of the reference clock between two of the counter: the
// clock showed Ref, in nanoseconds, at a moment when the counter was at From or
// beyond and not beyond To.
type Sample struct {
	From, To uint64
	Ref      int64
	Grain    uint64 // the counter's, in ticks; 0 is 1
}

// Grain returns the step in which the counter is seen to advance, in ticks. It may
// be more than one: there are TSCs that advance by 26 every 10 ns, and emulators'
// counters that advance once in a microsecond. Where a reading takes longer than a
// step, it is what a reading takes.
//
// It is the median of what is seen and not the minimum: some CPUs never show the
// same value twice, and add one to it instead.
func Grain() uint64 {
	var steps [301]uint64
	last := Unordered()
	n := 0
	for looks := 0; n < len(steps) && looks < 1<<20; looks++ {
		now := Unordered()
		if now != last {
			steps[n] = now - last
			n++
		}
		last = now
	}
	if n == 0 {
		return 1
	}
	slices.Sort(steps[:n])
	return steps[n/2]
}

// Take samples the clock that read reads, up to tries times, and returns the
// narrowest sample. One that is no wider than enough ends the search. What makes
// samples wide is an interrupt, or the loss of the CPU, between the readings.
func Take(read func() int64, grain uint64, tries int, enough uint64) Sample {
	var best Sample
	for i := range tries {
		from := Ordered()
		ref := read()
		s := Sample{From: from, To: Ordered(), Ref: ref, Grain: grain}
		if i == 0 || s.Width() < best.Width() {
			best = s
		}
		if best.Width() <= enough {
			break
		}
	}
	return best
}

// Width returns how many ticks the sample took.
func (s Sample) Width() uint64 { return s.To - s.From }

// half returns by how many ticks the moment of the reading may be off the middle
// of the sample. The counter's own steps are part of it: it may have been
// anywhere in the one that began at To.
func (s Sample) half() float64 { return float64(s.Width())/2 + s.step() }

// step returns half of the counter's grain: by so much a reading may be off the
// middle of the step that it shows.
func (s Sample) step() float64 { return float64(max(s.Grain, 1)) / 2 }

// ticksSince returns the ticks from the middle of an earlier sample to the
// middle of s. Negative if the counter went back.
func (s Sample) ticksSince(earlier Sample) float64 {
	return float64(int64(s.From-earlier.From)) + s.half() - earlier.half()
}

// Fit returns the counter's frequency in Hz by two samples of a clock, and by how
// much it may be wrong if each reading was anywhere within its sample. Readings of
// one kind are at nearly the same place within samples of one width, which makes
// the fit some twenty times better than that. A frequency of 0 means that the
// samples are not of a counter that counts.
func Fit(first, last Sample) (hz, err float64) {
	ticks, ns := last.ticksSince(first), float64(last.Ref-first.Ref)
	if ticks <= 0 || ns <= 0 {
		return 0, math.Inf(1)
	}
	hz = ticks / ns * 1e9
	return hz, hz * ((first.half()+last.half())/ticks + 2/ns)
}

// WholeKHz rounds a fitted frequency to the whole kilohertz in which kernels keep
// it. It reports whether that is certain: there is no other whole kilohertz that
// the fit leaves room for, and there is one. A fit that is no more exact than that
// is rounded all the same if it is near one, on the grounds given at [Fit].
func WholeKHz(hz, err float64) (rounded float64, certain bool) {
	rounded = math.Round(hz/1e3) * 1e3
	off := math.Abs(hz - rounded)
	switch {
	case rounded == 0:
		return hz, false
	case err < 500:
		if off > err {
			return hz, false
		}
		return rounded, true
	case off > 250:
		return hz, false
	}
	return rounded, false
}
