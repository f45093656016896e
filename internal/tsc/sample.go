package tsc

import "math"

// A Sample is one reading of the reference clock between two of the counter: the
// clock showed Ref, in nanoseconds, at a moment when the counter was at From or
// beyond and not beyond To.
type Sample struct {
	From, To uint64
	Ref      int64
}

// Take samples the clock that read reads, up to tries times, and returns the
// narrowest sample. One that is no wider than enough ends the search. What makes
// samples wide is an interrupt, or the loss of the CPU, between the readings.
func Take(read func() int64, tries int, enough uint64) Sample {
	var best Sample
	for i := range tries {
		from := Ordered()
		ref := read()
		s := Sample{From: from, To: Ordered(), Ref: ref}
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
// anywhere in the tick at which To was read.
func (s Sample) half() float64 { return float64(s.Width()+1) / 2 }

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
// it, unless it is too far from one for that to be its value.
func WholeKHz(hz float64) (rounded float64, whole bool) {
	rounded = math.Round(hz/1e3) * 1e3
	if rounded == 0 || math.Abs(hz-rounded) > 250 {
		return hz, false
	}
	return rounded, true
}
