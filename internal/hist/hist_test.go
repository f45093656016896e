package hist

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// borders are values around which buckets begin and end.
func borders() []int64 {
	values := []int64{0, 1, 2, math.MaxInt64, math.MaxInt64 - 1}
	for b := range Buckets {
		for d := int64(-1); d <= 1; d++ {
			if v := Upper(b); v > 0 && v < math.MaxInt64 {
				values = append(values, v+d)
			}
		}
	}
	for shift := range 63 {
		values = append(values, 1<<shift, 1<<shift-1)
	}
	slices.Sort(values)
	return slices.Compact(values)
}

// TestBuckets: the buckets cover all values without a gap, in order, and each
// is at most an eighth as wide as its least value.
func TestBuckets(t *testing.T) {
	if bucket(0) != 0 || Upper(0) != 0 {
		t.Fatalf("bucket(0) = %d, Upper(0) = %d", bucket(0), Upper(0))
	}
	for b := 1; b < Buckets; b++ {
		low, high := Upper(b-1)+1, Upper(b)
		if low > high {
			t.Fatalf("bucket %d ends at %d, the one before at %d", b, high, low-1)
		}
		if bucket(uint64(low)) != b || bucket(uint64(high)) != b {
			t.Fatalf("bucket %d holds %d to %d, which fall into %d and %d",
				b, low, high, bucket(uint64(low)), bucket(uint64(high)))
		}
		if width := high - low; width > low/sub {
			t.Fatalf("bucket %d, %d to %d, is wider than an eighth", b, low, high)
		}
	}
	if Upper(Buckets-1) != math.MaxInt64 {
		t.Fatalf("the last bucket ends at %d", Upper(Buckets-1))
	}
}

// TestRoundTrip: a value lies in its bucket and not in the one before.
func TestRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	values := borders()
	for range 100_000 {
		values = append(values, rng.Int64()>>rng.IntN(63))
	}
	for _, v := range values {
		b := bucket(uint64(v))
		if b < 0 || b >= Buckets || Upper(b) < v || b > 0 && Upper(b-1) >= v {
			t.Fatalf("value %d falls into bucket %d, which ends at %d", v, b, Upper(b))
		}
	}
}

// TestQuantile compares with the sorted values: never less than the value of
// that rank, at most an eighth more, and never more than the greatest value.
func TestQuantile(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 0))
	for round := range 300 {
		var h Hist
		values := make([]int64, 1+rng.IntN(1<<(1+round%10)))
		spread := rng.IntN(62)
		var sum uint64
		for i := range values {
			values[i] = rng.Int64() >> spread >> rng.IntN(8)
			h.Record(values[i])
			sum += uint64(values[i])
		}
		slices.Sort(values)
		last := values[len(values)-1]
		if h.Count != uint64(len(values)) || h.Sum != sum || h.Max != last {
			t.Fatalf("seed %d: Count %d, Sum %d, Max %d; want %d, %d, %d", seed, h.Count, h.Sum, h.Max, len(values), sum, last)
		}
		before := int64(0)
		for _, q := range []float64{-1, 0, 0.001, 0.1, 0.25, 0.5, 0.9, 0.99, 0.999, 1, 2} {
			rank := int(max(0, min(q, 1)) * float64(len(values)))
			v := values[min(rank, len(values)-1)]
			got := h.Quantile(q)
			if got < v || got-v > v/sub || got > last || got < before {
				t.Fatalf("seed %d: Quantile(%v) = %d of %d values, that of rank %d is %d, the greatest %d, the quantile before %d",
					seed, q, got, len(values), rank, v, last, before)
			}
			before = got
		}
	}
}

// TestFraction: at least the fraction q of all values are not above Quantile(q).
func TestFraction(t *testing.T) {
	var h Hist
	for v := range int64(1000) {
		h.Record(v * v)
	}
	for q := 0.0; q <= 1; q += 1.0 / 64 {
		bound, below := h.Quantile(q), 0
		for v := range int64(1000) {
			if v*v <= bound {
				below++
			}
		}
		if float64(below) < q*1000 {
			t.Errorf("Quantile(%v) = %d, but only %d of 1000 values are not above it", q, bound, below)
		}
	}
}

func TestZeroHist(t *testing.T) {
	var h Hist
	for _, q := range []float64{0, 0.5, 1} {
		if got := h.Quantile(q); got != 0 {
			t.Errorf("Quantile(%v) of no values = %d", q, got)
		}
	}
}

func TestNegative(t *testing.T) {
	var h Hist
	h.Record(-5)
	h.Record(math.MinInt64)
	if h.Counts[0] != 2 || h.Count != 2 || h.Sum != 0 || h.Max != 0 || h.Quantile(1) != 0 {
		t.Errorf("negative values: %d in bucket 0, Count %d, Sum %d, Max %d", h.Counts[0], h.Count, h.Sum, h.Max)
	}
}

// TestAdd: two histograms added up are that of all their values.
func TestAdd(t *testing.T) {
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	var all, sum Hist
	for range 5 {
		var part Hist
		for range rng.IntN(500) {
			v := rng.Int64() >> rng.IntN(63)
			part.Record(v)
			all.Record(v)
		}
		sum.Add(&part)
	}
	for _, v := range borders() {
		var one Hist
		one.Record(v)
		all.Record(v)
		sum.Add(&one)
	}
	if sum != all {
		t.Errorf("added up: Count %d, Sum %d, Max %d; want %d, %d, %d", sum.Count, sum.Sum, sum.Max, all.Count, all.Sum, all.Max)
	}
	if want := bits.Len64(uint64(sum.Max)); want != 63 {
		t.Errorf("Max is %d", sum.Max)
	}
}

// BenchmarkRecord is what one value costs, of the two to four that a timer has.
func BenchmarkRecord(b *testing.B) {
	var h Hist
	v := int64(1)
	for b.Loop() {
		v = v*5 ^ 0x5bd1e995
		h.Record(v & 0xffff_ffff)
	}
}
