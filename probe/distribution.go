package probe

import (
	"encoding/json"
	"math"
	"slices"
	"time"

	"github.com/detent-go/detent/internal/hist"
)

// A Distribution is of durations: latenesses of sleeps, gaps in a spinning loop.
type Distribution struct {
	Count                               int64
	Min, Mean, P50, P90, P99, P999, Max time.Duration
	// Buckets are the classes that hold any of them, in ascending order. Each is
	// an eighth as wide as its values, or a nanosecond.
	Buckets []Bucket
}

// A Bucket counts the durations from From to To, both included.
type Bucket struct {
	From  time.Duration `json:"from_ns"`
	To    time.Duration `json:"to_ns"`
	Count uint64        `json:"count"`
}

// MarshalJSON writes durations in nanoseconds.
func (d Distribution) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Count   int64    `json:"count"`
		Min     int64    `json:"min_ns"`
		Mean    int64    `json:"mean_ns"`
		P50     int64    `json:"p50_ns"`
		P90     int64    `json:"p90_ns"`
		P99     int64    `json:"p99_ns"`
		P999    int64    `json:"p999_ns"`
		Max     int64    `json:"max_ns"`
		Buckets []Bucket `json:"buckets"`
	}{
		d.Count, int64(d.Min), int64(d.Mean), int64(d.P50), int64(d.P90), int64(d.P99), int64(d.P999), int64(d.Max),
		append([]Bucket{}, d.Buckets...),
	})
}

// distributionOf summarizes values in nanoseconds, which it sorts. Its quantiles
// are values that occur.
func distributionOf(values []int64) Distribution {
	if len(values) == 0 {
		return Distribution{}
	}
	slices.Sort(values)
	var h hist.Hist
	sum := 0.0
	for _, v := range values {
		h.Record(v)
		sum += float64(v)
	}
	at := func(q float64) time.Duration { return time.Duration(quantile(values, q)) }
	return Distribution{
		Count: int64(len(values)), Min: at(0), Max: at(1),
		Mean: time.Duration(sum / float64(len(values))),
		P50:  at(0.5), P90: at(0.9), P99: at(0.99), P999: at(0.999),
		Buckets: bucketsOf(&h),
	}
}

// distributionOfHist is for values that are too many to be kept. Quantiles are up
// to an eighth too large, and so is Min.
func distributionOfHist(h *hist.Hist) Distribution {
	if h.Count == 0 {
		return Distribution{}
	}
	at := func(q float64) time.Duration { return time.Duration(h.Quantile(q)) }
	return Distribution{
		Count: int64(h.Count), Min: at(0), Max: time.Duration(h.Max),
		Mean: time.Duration(h.Sum / h.Count),
		P50:  at(0.5), P90: at(0.9), P99: at(0.99), P999: at(0.999),
		Buckets: bucketsOf(h),
	}
}

func bucketsOf(h *hist.Hist) []Bucket {
	var buckets []Bucket
	for b, n := range h.Counts {
		if n == 0 {
			continue
		}
		from := int64(0)
		if b > 0 {
			from = hist.Upper(b-1) + 1
		}
		buckets = append(buckets, Bucket{time.Duration(from), time.Duration(hist.Upper(b)), n})
	}
	return buckets
}

// quantile returns the smallest of the sorted values that the fraction q of all
// does not exceed.
func quantile[T int64 | float64](sorted []T, q float64) T {
	if len(sorted) == 0 {
		return 0
	}
	i := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}

// median returns the median of values, which it sorts; 0 of none.
func median[T int64 | float64](values []T) T {
	slices.Sort(values)
	return quantile(values, 0.5)
}

// A slope is a straight line's, fitted to points.
type slope struct {
	value float64
	err   float64 // three standard errors; +Inf for fewer than three points
}

// regress fits a line through points by least squares.
func regress(x, y []float64) slope {
	n := float64(len(x))
	if n < 2 {
		return slope{0, math.Inf(1)}
	}
	var mx, my float64
	for i := range x {
		mx += x[i] / n
		my += y[i] / n
	}
	var xx, xy float64
	for i := range x {
		xx += (x[i] - mx) * (x[i] - mx)
		xy += (x[i] - mx) * (y[i] - my)
	}
	if xx == 0 {
		return slope{0, math.Inf(1)}
	}
	s := slope{xy / xx, math.Inf(1)}
	if n < 3 {
		return s
	}
	var rest float64
	for i := range x {
		r := y[i] - my - s.value*(x[i]-mx)
		rest += r * r
	}
	s.err = 3 * math.Sqrt(rest/(n-2)/xx)
	return s
}
