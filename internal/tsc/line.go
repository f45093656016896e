package tsc

import "math/bits"

// fraction is the number of bits behind the point in Line.Mult. With 48, a tick
// may last up to 65 us, and a line of a minute is exact to a nanosecond.
const fraction = 48

// A Line turns readings of the counter into time, for a stretch of the counter
// that begins at Start and is Span ticks long. Lines follow one another: the
// next begins no sooner than the last one ends, with no smaller a value. So
// whoever reads the counter and finds it in a line's stretch may use that line,
// however long ago it looked the line up, and time never steps back.
type Line struct {
	Start, Span uint64
	Base        int64  // ns at Start
	Mult        uint64 // ns for a tick, with 48 bits behind the point
	Error       int64  // ns that Base may be off the reference clock
	Drift       int64  // how fast that grows, in billionths
}

// Covers tells whether a reading is in the line's stretch.
func (l *Line) Covers(tick uint64) bool { return tick-l.Start < l.Span }

// At returns the time at a reading in the line's stretch or at its end.
func (l *Line) At(tick uint64) int64 { return l.Base + Scale(tick-l.Start, l.Mult) }

// End returns the time at the end of the stretch, which no reading in it exceeds.
func (l *Line) End() int64 { return l.At(l.Start + l.Span) }

// Bound returns how far, in nanoseconds, the line may be off the reference clock
// when elapsed nanoseconds have passed since Start.
func (l *Line) Bound(elapsed int64) int64 { return Bound(l.Error, l.Drift, elapsed) }

// Bound is [Line.Bound] for one who has the parts of a line. A line is far too
// short for the product to overflow.
func Bound(err, drift, elapsed int64) int64 {
	const round = 3 // of the line, of Base, and of the quotient
	return err + elapsed*drift/1e9 + round
}

// Scale returns the nanoseconds that a number of ticks takes at mult. The product
// has 128 bits.
func Scale(ticks, mult uint64) int64 {
	hi, lo := bits.Mul64(ticks, mult)
	return int64(hi<<(64-fraction) | lo>>fraction)
}
