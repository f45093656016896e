package probe

import (
	"math"
	"slices"
	"time"
)

// A reading reads some clock n times, and returns something that depends on each
// of the values, so that none can be left out.
type reading struct {
	name string
	read func(n int) int64
}

// stopwatch is what measurements take their time by. It works on every system,
// and whatever is wrong with the clocks that are measured.
type stopwatch struct{ began time.Time }

func newStopwatch() stopwatch { return stopwatch{time.Now()} }

// ns returns the nanoseconds since the stopwatch was made.
func (s stopwatch) ns() int64 { return int64(time.Since(s.began)) }

// grain returns the smallest step that the stopwatch was seen to make, at least 1.
// 0 means that it stands still.
func (s stopwatch) grain() int64 {
	const enough, most = 50, 1 << 22
	best := int64(math.MaxInt64)
	last := s.ns()
	for seen, looks := 0, 0; seen < enough && looks < most; looks++ {
		now := s.ns()
		if now > last {
			best = min(best, now-last)
			seen++
		}
		last = now
	}
	if best == math.MaxInt64 {
		return 0
	}
	return best
}

// A batch is how many readings are timed at once: enough that the stopwatch's own
// time and grain do not count, few enough that most batches are not interrupted.
const (
	batchTime  = 20_000 // ns
	batchGrain = 200    // steps of the stopwatch
	batchMost  = 1 << 20
)

// batchOf finds out how many readings make a batch.
func batchOf(s stopwatch, grain int64, read func(n int) int64) int {
	want := max(batchTime, batchGrain*grain)
	for n := 16; ; n *= 2 {
		best := int64(math.MaxInt64)
		for range 3 {
			began := s.ns()
			read(n)
			best = min(best, s.ns()-began)
		}
		if best >= want/4 || n >= batchMost {
			return min(max(1, int(int64(n)*want/max(best, 1))), batchMost)
		}
	}
}

// costs is what readings of one clock took, in nanoseconds a reading, one value a
// round.
type costs []float64

// least returns what a reading takes that nothing disturbs.
func (c costs) least() float64 {
	best := math.Inf(1)
	for _, v := range c {
		best = min(best, v)
	}
	if math.IsInf(best, 1) {
		return 0
	}
	return best
}

// typical returns the median.
func (c costs) typical() float64 { return median(append([]float64(nil), c...)) }

// over returns how many times as dear as another clock's readings these are: by
// the least of each, and by the median of the rounds. Both are 0 if that is not
// known. What a busy machine does to one of them it seldom does to the other.
func (c costs) over(other costs) (least, typical float64) {
	if len(c) == 0 || len(c) != len(other) || other.least() <= 0 {
		return 0, 0
	}
	ratios := make([]float64, len(c))
	for i := range c {
		ratios[i] = c[i] / max(other[i], 1e-3)
	}
	return c.least() / other.least(), median(ratios)
}

// timeReadings times each of the readings once a round, in turn, so that what
// disturbs one disturbs all of them alike. more is asked before each round.
func timeReadings(readings []reading, more func(round int) bool) []costs {
	s := newStopwatch()
	grain := s.grain()
	all := make([]costs, len(readings))
	if grain == 0 {
		return all
	}
	batches := make([]int, len(readings))
	for i, r := range readings {
		batches[i] = batchOf(s, grain, r.read)
	}
	for round := 0; more(round); round++ {
		for i, r := range readings {
			n := batches[i]
			began := s.ns()
			r.read(n)
			all[i] = append(all[i], float64(s.ns()-began)/float64(n))
		}
	}
	return all
}

// stepOf returns the step in which a clock was seen to advance, in its own units:
// a tenth of all steps are smaller, for those may be of a thread that went to
// another CPU. 0 if it made none within the time.
func stepOf(read func() int64, within time.Duration) int64 {
	const enough, looks = 3, 5
	var steps []int64
	for range looks {
		s := newStopwatch()
		steps = append(steps, stepsOf(read, within)...)
		// A step of a thread that had lost its CPU is one of many: it takes others
		// to tell.
		if len(steps) >= enough || s.ns() < 2*int64(within) {
			break
		}
	}
	slices.Sort(steps)
	return quantile(steps, 0.1)
}

// stepsOf returns the steps that a clock makes within a time, the first of them.
func stepsOf(read func() int64, within time.Duration) []int64 {
	const enough, most = 200, 1 << 23
	s := newStopwatch()
	steps := make([]int64, 0, enough)
	last := read()
	for looks := 1; len(steps) < enough && looks < most; looks++ {
		now := read()
		if now > last {
			steps = append(steps, now-last)
		}
		last = now
		if looks%64 == 0 && s.ns() > int64(within) {
			break
		}
	}
	return steps
}
