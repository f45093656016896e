package trace

import (
	"encoding/json"
	"math/bits"
	"time"
)

// histogramBuckets is how many the kernel's programs keep.
const histogramBuckets = 40

// A Histogram counts durations by their magnitude: bucket i holds those of i bits,
// from 2^(i-1) ns to 2^i - 1 ns, and the last one all that are longer.
type Histogram struct {
	Count   uint64
	Sum     time.Duration
	Max     time.Duration // since the start, also in a difference
	Buckets [histogramBuckets]uint64
}

// BucketMax is the longest duration of bucket i.
func BucketMax(i int) time.Duration { return 1<<i - 1 }

// Observe counts one duration; a negative one counts as 0.
func (h *Histogram) Observe(d time.Duration) {
	d = max(d, 0)
	h.Buckets[min(bits.Len64(uint64(d)), histogramBuckets-1)]++
	h.Count++
	h.Sum += d
	h.Max = max(h.Max, d)
}

// Mean is 0 for an empty histogram.
func (h *Histogram) Mean() time.Duration {
	if h.Count == 0 {
		return 0
	}
	return h.Sum / time.Duration(h.Count)
}

// Quantile returns a bound that the share q of the durations does not exceed: the
// upper end of a bucket, hence up to twice the true value, and never more than Max.
func (h *Histogram) Quantile(q float64) time.Duration {
	if h.Count == 0 {
		return 0
	}
	rank := uint64(q * float64(h.Count))
	if rank >= h.Count {
		rank = h.Count - 1
	}
	var seen uint64
	for i, n := range h.Buckets {
		if seen += n; seen > rank {
			if i == histogramBuckets-1 {
				return h.Max
			}
			return min(BucketMax(i), max(h.Max, 0))
		}
	}
	return h.Max
}

// Since returns what h has more than an earlier state of itself; nil is an empty
// one. Max stays.
func (h Histogram) Since(earlier *Histogram) Histogram {
	if earlier == nil {
		return h
	}
	h.Count -= min(earlier.Count, h.Count)
	h.Sum -= min(earlier.Sum, h.Sum)
	for i := range h.Buckets {
		h.Buckets[i] -= min(earlier.Buckets[i], h.Buckets[i])
	}
	return h
}

// Add counts all that o has counted.
func (h *Histogram) Add(o *Histogram) {
	h.Count += o.Count
	h.Sum += o.Sum
	h.Max = max(h.Max, o.Max)
	for i := range h.Buckets {
		h.Buckets[i] += o.Buckets[i]
	}
}

type histogramJSON struct {
	Count   uint64        `json:"count"`
	Sum     time.Duration `json:"sum_ns"`
	Max     time.Duration `json:"max_ns"`
	P50     time.Duration `json:"p50_ns"`
	P99     time.Duration `json:"p99_ns"`
	Buckets []uint64      `json:"buckets"` // without the empty ones at the end
}

// MarshalJSON writes durations in nanoseconds, with the median and the 99th
// percentile.
func (h Histogram) MarshalJSON() ([]byte, error) {
	used := histogramBuckets
	for used > 0 && h.Buckets[used-1] == 0 {
		used--
	}
	return json.Marshal(histogramJSON{h.Count, h.Sum, h.Max, h.Quantile(0.5), h.Quantile(0.99), h.Buckets[:used]})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (h *Histogram) UnmarshalJSON(b []byte) error {
	var form histogramJSON
	if err := json.Unmarshal(b, &form); err != nil {
		return err
	}
	*h = Histogram{Count: form.Count, Sum: form.Sum, Max: form.Max}
	copy(h.Buckets[:], form.Buckets)
	return nil
}
