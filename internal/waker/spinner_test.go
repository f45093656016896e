package waker

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestSpinnerBounds: whatever is learnt, the margin stays within its bounds, and a
// wake-up later than the greatest margin changes nothing.
func TestSpinnerBounds(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	var s Spinner
	for range 100_000 {
		before, late := s.Margin(), rng.Int64N(1<<rng.IntN(40))
		s.Learn(late)
		after := s.Margin()
		switch {
		case after < SpinLeast || after > SpinMost:
			t.Fatalf("the margin is %d", after)
		case late > SpinMost && after != before:
			t.Fatalf("%d ns late: the margin went from %d to %d", late, before, after)
		case late <= SpinMost && late > before && after < late:
			t.Fatalf("%d ns late: the margin went from %d to %d only", late, before, after)
		case late <= SpinMost && late+spinGuard <= before && after > before:
			t.Fatalf("%d ns late: the margin went from %d up to %d", late, before, after)
		}
	}
}

// TestSpinnerDecays: the margin follows the wake-ups down as the formula says, and
// all the way.
func TestSpinnerDecays(t *testing.T) {
	var s Spinner
	s.Learn(200_000)
	if m := s.Margin(); m != 200_000+spinGuard {
		t.Fatalf("the margin is %d", m)
	}
	for range spinDecay {
		s.Learn(20_000)
	}
	// By a factor of e, less what is rounded.
	if left := s.Margin() - 20_000 - spinGuard; left < 60_000 || left > 70_000 {
		t.Errorf("of 180 us %d ns are left", left)
	}
	for range 200_000 {
		s.Learn(0)
	}
	if m := s.Margin(); m != SpinLeast {
		t.Errorf("the margin is %d", m)
	}
}

// TestSpinnerMisses: of wake-ups with a long tail, those that come after the margin
// are few: less than one in a hundred, without a margin of the greatest there are.
func TestSpinnerMisses(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	late := func() int64 { return 30_000 + int64(rng.ExpFloat64()*10_000) }
	var s Spinner
	misses, sum := 0, int64(0)
	const n = 200_000
	for k := range n {
		l := late()
		if k > n/10 {
			sum += s.Margin()
			if l > s.Margin() {
				misses++
			}
		}
		s.Learn(l)
	}
	share, mean := float64(misses)/(n*9/10), sum/(n*9/10)
	t.Logf("%.4f missed with a mean margin of %d ns", share, mean)
	if share > 0.01 || mean > 130_000 {
		t.Errorf("%.4f missed with a mean margin of %d ns", share, mean)
	}
}
