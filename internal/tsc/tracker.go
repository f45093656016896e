package tsc

import "math"

// A Tracker keeps lines on the reference clock. It is a pure function of the
// samples that it is given.
//
// # How
//
// Each line is aimed from a fresh sample, at the rate that the samples of the
// last 50 to 100 ms give, and is good for half a millisecond. If the clock is
// behind the end of the last line, the next one begins there all the same, and
// runs so much slower that it meets the clock at its own end; if the clock is
// ahead, the line begins on it.
//
// # How far off
//
// A reading is off the clock by no more than the sum of
//
//   - half the width of the sample, some 20 ns: where in it the clock was read
//     is not known;
//   - what the line began ahead of the clock, of the same size;
//   - half of the step in which the counter advances, some 5 ns, and the rounding
//     to nanoseconds;
//   - the age of the line times 1,000 ppm, for the clock's rate may change at
//     any moment when somebody disciplines it: by this much if it goes from one
//     end of what adjtimex's frequency allows to the other;
//   - the age of the line times what the rate's estimate may be wrong.
//
// So it is 50 ns in a line's first microseconds and 0.6 us at its end. It is
// wrong when the rate changes by more: adjtimex's tick can change it by 10 %,
// which chrony makes use of to correct a large offset, and adjtime(3) adds 500
// ppm. The line after such a change is right again; Excess counts them.
//
// # What was traded away
//
// Longer lines would cost less: a new one takes 0.1 us. But they would be off by
// more. A line that follows the clock's own rate changes would need the kernel
// to tell of them, which it does not.
type Tracker struct {
	rate    float64 // ns for a tick
	rateErr float64 // by what part of itself rate may be wrong

	// The samples that rate is from: from is 50 to 100 ms before last, mid
	// takes its place when it is that old.
	from, mid, last Sample

	line Line

	// Excess counts the samples that were further off the line than its bound
	// said, Jumps those that were off by more than any change of rate explains:
	// the counter or the clock jumped, or the counter stood still. Worst is the
	// largest distance, in nanoseconds, of a sample from the line before it; it
	// is looked at while lines follow one another closely, and is 0 otherwise.
	Excess, Jumps uint64
	Worst         int64
}

const (
	span   = 500e3 // ns that a line lasts
	window = 50e6  // ns after which a sample is old enough to begin the window

	// drift is the change of the clock's rate that the bound allows for.
	drift = 1000e-6

	// slack is the largest change of rate that is taken for one, tick
	// adjustments included. Beyond it there has been a jump.
	slack = 0.15
)

// NewTracker returns a tracker that has seen two samples, which must be of a
// counter that counts, see [Fit].
func NewTracker(first, last Sample) *Tracker {
	t := &Tracker{from: first, mid: last, last: last}
	t.rate = float64(last.Ref-first.Ref) / last.ticksSince(first)
	t.rateErr = t.uncertainty(first, last)
	return t
}

// Frequency returns the counter's frequency in Hz by the reference clock.
func (t *Tracker) Frequency() float64 { return 1e9 / t.rate }

// Next returns the line that follows at a sample, which begins no lower than floor
// and no lower than the last line ended.
func (t *Tracker) Next(s Sample, floor int64) Line {
	t.follow(s)
	t.last = s

	if t.line.Span != 0 {
		floor = max(floor, t.line.End())
	}
	// What the clock shows in the middle of the counter's step at which the
	// line begins.
	want := float64(s.Ref) + t.rate*float64(s.Width())/2
	base := max(floor, int64(math.Round(want)))
	ahead := max(0, float64(base)-want)
	ticks := math.Ceil(span / t.rate)
	rate := t.rate
	if ahead > 0.5 {
		rate = max(t.rate/2, t.rate-ahead/ticks)
	}
	t.line = Line{
		Start: s.To,
		Span:  uint64(ticks),
		Base:  base,
		Mult:  uint64(math.Round(rate * (1 << fraction))),
		Error: int64(math.Ceil(ahead + (s.half()+s.step())*t.rate + 1)),
		Drift: int64(math.Ceil((drift + t.rateErr) * 1e9)),
	}
	return t.line
}

// Cut shortens the line that Next has returned last, to at most so many
// nanoseconds and at least a tick, and returns it.
func (t *Tracker) Cut(ns int64) Line {
	if ns < t.line.End()-t.line.Base {
		ticks := uint64(max(0, ns)) << 32 / (t.line.Mult >> (fraction - 32))
		t.line.Span = min(t.line.Span, max(1, ticks))
	}
	return t.line
}

// follow corrects the rate by a sample, and judges the line that ends with it.
func (t *Tracker) follow(s Sample) {
	ticks := s.ticksSince(t.last)
	ns := ticks * t.rate
	off := float64(s.Ref-t.last.Ref) - ns // where the clock is, seen from where the rate puts it
	noise := (s.half()+t.last.half())*t.rate + 2
	if ticks < 0 || math.Abs(off) > noise+slack*ns+1000 {
		// Nothing before this sample counts any more, but the rate is as good
		// a guess as there is.
		t.Jumps++
		t.from, t.mid = s, s
		t.rateErr = max(t.rateErr, drift)
		return
	}
	if ticks == 0 {
		return // within one step of the counter: nothing to learn
	}
	t.judge(s)
	changed := math.Abs(off) - noise - t.rateErr*ns
	if changed > 0 {
		// The clock runs at another rate than before. The old one is wrong by
		// what is seen, the last two samples give a new one.
		t.from, t.mid = t.last, s
		t.rateErr = max(t.rateErr, (math.Abs(off)+noise)/ns)
	}
	if err := t.uncertainty(t.from, s); err <= t.rateErr {
		t.rate = float64(s.Ref-t.from.Ref) / s.ticksSince(t.from)
		t.rateErr = err
	}
	if s.ticksSince(t.mid)*t.rate > window {
		t.from, t.mid = t.mid, s
		// The estimate over the shorter window is the worse one, but the
		// next is over a longer one again.
		t.rateErr = max(t.rateErr, t.uncertainty(t.from, s))
	}
}

// uncertainty returns by what part of itself the rate from two samples may be
// wrong.
func (t *Tracker) uncertainty(a, b Sample) float64 {
	ticks := b.ticksSince(a)
	if ticks <= 0 {
		return math.Inf(1)
	}
	return (a.half()+b.half())/ticks + 2/float64(b.Ref-a.Ref)
}

// judge looks at how far the line was off a sample that was taken soon after its
// end.
func (t *Tracker) judge(s Sample) {
	if t.line.Span == 0 || s.From-t.line.Start > 2*t.line.Span {
		return
	}
	middle := s.From + s.Width()/2
	if middle < t.line.Start {
		return
	}
	at := t.line.At(middle)
	off := at - s.Ref
	if off < 0 {
		off = -off
	}
	t.Worst = max(t.Worst, off)
	if float64(off) > float64(t.line.Bound(at-t.line.Base))+s.half()*t.rate {
		t.Excess++
	}
}
