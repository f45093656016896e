// Package hist is a histogram of durations with a fixed size and logarithmic
// buckets: 8 to each power of two, so a bucket is at most an eighth as wide as
// the values in it.
//
// A [Hist] has no lock: its owner guards it. Recording is an increment of a
// plain word, about 2 ns, where an atomic one would cost three times as much;
// the shards of package shard record under a lock that they hold anyway.
package hist

import "math/bits"

const (
	subBits = 3
	sub     = 1 << subBits

	// Buckets is the number of buckets: values of 0 to 1<<63-1.
	Buckets = (64 - subBits) * sub
)

// Hist counts values in nanoseconds. The zero Hist is empty and ready.
type Hist struct {
	Counts [Buckets]uint64
	Count  uint64 // number of values
	Sum    uint64 // of all values, in nanoseconds; wraps after 584 years
	Max    int64  // the greatest value
}

// bucket returns the number of the bucket that v falls into.
func bucket(v uint64) int {
	if v < sub {
		return int(v)
	}
	exp := bits.Len64(v) - 1 - subBits
	return exp<<subBits + int(v>>exp)
}

// Upper returns the greatest value that falls into bucket b.
func Upper(b int) int64 {
	if b < 2*sub {
		return int64(b)
	}
	exp := b>>subBits - 1
	return int64(uint64(b&(sub-1)+sub+1)<<exp - 1)
}

// Record counts a value; a negative one counts as 0.
func (h *Hist) Record(ns int64) {
	ns = max(ns, 0)
	h.Counts[bucket(uint64(ns))]++
	h.Count++
	h.Sum += uint64(ns)
	h.Max = max(h.Max, ns)
}

// Add adds the values of o to h.
func (h *Hist) Add(o *Hist) {
	for b, c := range o.Counts {
		h.Counts[b] += c
	}
	h.Count += o.Count
	h.Sum += o.Sum
	h.Max = max(h.Max, o.Max)
}

// Quantile returns an upper bound, at most an eighth too large, of the value
// below which the fraction q of all values lie; 0 for an empty histogram. q is
// taken to be from 0 to 1.
func (h *Hist) Quantile(q float64) int64 {
	if h.Count == 0 {
		return 0
	}
	rank := uint64(max(0, min(q, 1)) * float64(h.Count))
	var seen uint64
	for b, c := range h.Counts {
		seen += c
		if seen > rank || seen == h.Count {
			return min(Upper(b), h.Max)
		}
	}
	return h.Max
}
