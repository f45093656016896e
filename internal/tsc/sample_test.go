package tsc

import (
	"math"
	"testing"
	"time"
)

func TestOrderedCounts(t *testing.T) {
	if !Supported {
		if Ordered() != 0 || Unordered() != 0 || Check() == nil {
			t.Error("a counter where none is supported")
		}
		t.Skip("no counter in this build")
	}
	Check()
	last := Ordered()
	for range 100_000 {
		now := Ordered()
		if now < last {
			t.Fatalf("%d after %d", now, last)
		}
		last = now
	}
	before := Unordered()
	time.Sleep(time.Millisecond)
	if after := Unordered(); after <= before {
		t.Errorf("%d, a millisecond after %d", after, before)
	}
	Fence()
}

func TestTake(t *testing.T) {
	if !Supported {
		t.Skip("no counter in this build")
	}
	calls := 0
	clock := func() int64 { calls++; return int64(calls) }
	before := Ordered()
	s := Take(clock, 7, 5, 0)
	after := Ordered()
	// A counter of coarse steps may stand still for the whole of a sample.
	if calls != 5 && s.Width() != 0 || s.Ref < 1 || s.Ref > 5 || s.From < before || s.To > after || s.To < s.From || s.Grain != 7 {
		t.Errorf("Take = %+v after %d calls, between %d and %d", s, calls, before, after)
	}
	calls = 0
	if s := Take(clock, 1, 5, math.MaxUint64); calls != 1 || s.Ref != 1 {
		t.Errorf("Take = %+v after %d calls, though the first was good enough", s, calls)
	}
}

func TestGrain(t *testing.T) {
	grain := Grain()
	t.Log(grain)
	if grain == 0 || grain > 1<<40 {
		t.Errorf("Grain = %d", grain)
	}
}

// The true frequency is within the error that Fit states, and within a
// twentieth of it where the clock is read at the same place in every sample.
func TestFit(t *testing.T) {
	const hz = 2_599_998_000
	at := func(ns int64, place float64) Sample {
		moment := float64(ns) * hz / 1e9
		from := uint64(moment - 100*place)
		return Sample{From: from, To: from + 100, Ref: ns}
	}
	for _, places := range [][2]float64{{0.4, 0.4}, {0, 1}, {1, 0}, {0.35, 0.38}} {
		got, err := Fit(at(1_000_000, places[0]), at(21_000_000, places[1]))
		if math.Abs(got-hz) > err {
			t.Errorf("Fit at %v = %.0f, off by %.0f, stated %.0f", places, got, got-hz, err)
		}
		if math.Abs(places[1]-places[0]) < 0.05 && math.Abs(got-hz) > err/20 {
			t.Errorf("Fit at %v = %.0f, off by %.0f of %.0f", places, got, got-hz, err)
		}
	}
	s := at(1e6, 0)
	for _, bad := range []Sample{s, {From: s.From - 1000, To: s.To - 1000, Ref: s.Ref + 1000}, {From: s.From + 1000, To: s.To + 1000, Ref: s.Ref}} {
		if hz, err := Fit(s, bad); hz != 0 || !math.IsInf(err, 1) {
			t.Errorf("Fit = %v, %v of a counter that does not count", hz, err)
		}
	}
}

func TestWholeKHz(t *testing.T) {
	for _, test := range []struct {
		hz, err, want float64
		certain       bool
	}{
		{2_599_998_030, 40, 2_599_998_000, true},
		{2_599_997_970, 40, 2_599_998_000, true},
		{2_599_998_050, 40, 2_599_998_050, false}, // not a whole one
		{2_599_998_499, 499, 2_599_998_000, true},
		{2_599_998_130, 2200, 2_599_998_000, false},
		{2_599_997_800, 2200, 2_599_998_000, false},
		{2_599_998_251, 2200, 2_599_998_251, false},
		{2_599_998_500, 2200, 2_599_998_500, false},
		{24_000_000, 1, 24_000_000, true},
		{100, 1, 100, false},
	} {
		if got, certain := WholeKHz(test.hz, test.err); got != test.want || certain != test.certain {
			t.Errorf("WholeKHz(%.0f, %.0f) = %.0f, %v", test.hz, test.err, got, certain)
		}
	}
}
