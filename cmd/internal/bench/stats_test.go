package bench

import (
	"math"
	"testing"
)

func TestMedian(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		v    []float64
		want float64
	}{
		{[]float64{7}, 7},
		{[]float64{9, 1}, 5},
		{[]float64{3, 1, 2}, 2},
		{[]float64{4, 1, 3, 2}, 2.5},
		{[]float64{inf, 1, inf, inf}, inf},
	} {
		if got := median(c.v); got != c.want {
			t.Errorf("median(%v) = %v, want %v", c.v, got, c.want)
		}
	}
	if got := median(nil); !math.IsNaN(got) {
		t.Errorf("median of nothing = %v", got)
	}
	v := []float64{3, 1, 2}
	median(v)
	if v[0] != 3 {
		t.Error("median has sorted its argument")
	}
}

// TestInterval checks the interval against the definition: the chance that a
// fair coin's heads in n throws leave it.
func TestInterval(t *testing.T) {
	covered := func(n, k int) float64 {
		outside, c := 0.0, 1.0
		for i := 0; i <= k; i++ {
			outside += c
			c = c * float64(n-i) / float64(i+1)
		}
		return 1 - 2*outside/math.Pow(2, float64(n))
	}
	for n := 1; n <= 40; n++ {
		v := make([]float64, n)
		for i := range v { // 0 .. n-1 in falling order, from somewhere on
			v[i] = float64((i*(n-1) + 3) % n)
		}
		low, high := interval(v)
		k := int(low)
		if int(high) != n-1-k {
			t.Errorf("n=%d: %v .. %v is not symmetric", n, low, high)
		}
		if k > 0 && covered(n, k) < confidence {
			t.Errorf("n=%d: %v .. %v covers %.3f only", n, low, high, covered(n, k))
		}
		if covered(n, k+1) >= confidence {
			t.Errorf("n=%d: %v .. %v is wider than it need be", n, low, high)
		}
	}
}

func TestQuantile(t *testing.T) {
	v := []int64{10, 20, 30, 40, 50, 60, 70, 80, 90, 100}
	for _, c := range []struct {
		q    float64
		want int64
	}{{0, 10}, {0.1, 10}, {0.5, 50}, {0.51, 60}, {0.99, 100}, {1, 100}} {
		if got := quantile(v, c.q); got != c.want {
			t.Errorf("quantile(%v) = %d, want %d", c.q, got, c.want)
		}
	}
	if got := quantile(nil, 0.5); got != 0 {
		t.Errorf("quantile of nothing = %d", got)
	}
}

// TestStride: every timer is visited once in a pass.
func TestStride(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 5, 10, 100, 128, 1000, 4096} {
		step := stride(n)
		seen := make([]bool, n)
		for i, k := 0, 0; k < n; k++ {
			if seen[i] {
				t.Fatalf("n=%d, step %d: %d visited twice", n, step, i)
			}
			seen[i] = true
			if i += step; i >= n {
				i -= n
			}
		}
	}
}
