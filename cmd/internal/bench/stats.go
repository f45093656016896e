package bench

import (
	"math"
	"slices"
)

// median of v, which it leaves as it is; NaN of nothing.
func median(v []float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	s := slices.Sorted(slices.Values(v))
	m := len(s) / 2
	if len(s)%2 == 1 {
		return s[m]
	}
	if s[m-1] == s[m] { // of two infinities too, whose mean is not a number
		return s[m]
	}
	return (s[m-1] + s[m]) / 2
}

// confidence is how sure interval is that the true median lies inside it,
// given enough values.
const confidence = 0.85

// interval returns the narrowest pair of order statistics of v that encloses
// the median of what v was drawn from with the wanted confidence, whatever
// the distribution. The chance that the true median lies outside the k+1st
// smallest and largest of n values is that of at most k heads in n throws,
// twice. Up to six values that is the smallest and the largest of them, from
// seven on it forgives outliers.
func interval(v []float64) (low, high float64) {
	if len(v) == 0 {
		return math.NaN(), math.NaN()
	}
	s := slices.Sorted(slices.Values(v))
	n := len(s)
	k, tail, term := 0, 0.0, math.Pow(0.5, float64(n)) // term = C(n,k) / 2^n
	for {
		tail += term
		if 1-2*tail < confidence {
			break
		}
		k++
		term *= float64(n-k+1) / float64(k)
	}
	k = max(k-1, 0)
	return s[k], s[n-1-k]
}

// quantile returns the q-quantile of sorted values.
func quantile(sorted []int64, q float64) int64 {
	if len(sorted) == 0 {
		return 0
	}
	i := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}

// micros converts nanoseconds.
func micros(ns int64) float64 { return float64(ns) / 1e3 }

// lateness sorts ns and adds p50, p99 and the worst to v.
func (v values) lateness(ns []int64) {
	slices.Sort(ns)
	v["late_p50_us"] = micros(quantile(ns, 0.50))
	v["late_p99_us"] = micros(quantile(ns, 0.99))
	v["late_max_us"] = micros(quantile(ns, 1))
}
