package prom

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/detent-go/detent/timer"
)

// schema is that of the native form: 2^(2^-3) from a bucket to the next, which is
// about as fine as timer.Histogram.
const schema = 3

// zeroThreshold is what counts as zero in the native form: less than a nanosecond.
const zeroThreshold = 1e-9

// bounds are the classic buckets, in seconds: from what a spin is late by to what
// a saturated scheduler makes of it.
var bounds = []float64{
	1e-6, 5e-6, 10e-6, 25e-6, 50e-6, 100e-6, 250e-6, 500e-6,
	1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 100e-3, 1, 10,
}

// histogram is a timer.Histogram as a metric.
//
// A bucket of timer.Histogram goes as a whole into the bucket that holds its upper
// end: a value may be counted an eighth too high, never too low.
type histogram struct {
	desc   *prometheus.Desc
	labels []*dto.LabelPair
	h      timer.Histogram
}

// newHistogram returns h with labels: names and values in turn.
func newHistogram(d *prometheus.Desc, h timer.Histogram, labels ...string) prometheus.Metric {
	m := &histogram{desc: d, h: h}
	for i := 0; i < len(labels); i += 2 {
		m.labels = append(m.labels, &dto.LabelPair{Name: &labels[i], Value: &labels[i+1]})
	}
	slices.SortFunc(m.labels, func(a, b *dto.LabelPair) int { return strings.Compare(a.GetName(), b.GetName()) })
	return m
}

// Desc implements prometheus.Metric.
func (m *histogram) Desc() *prometheus.Desc { return m.desc }

// Write implements prometheus.Metric.
func (m *histogram) Write(out *dto.Metric) error {
	count, sum := m.h.Count(), m.h.Sum().Seconds()
	threshold, s := float64(zeroThreshold), int32(schema)
	h := &dto.Histogram{SampleCount: &count, SampleSum: &sum, ZeroThreshold: &threshold, Schema: &s}
	h.Bucket = classic(m.h)
	zero := native(h, m.h)
	h.ZeroCount = &zero
	out.Label, out.Histogram = m.labels, h
	return nil
}

func classic(h timer.Histogram) []*dto.Bucket {
	buckets := make([]*dto.Bucket, len(bounds))
	for i := range bounds {
		buckets[i] = &dto.Bucket{UpperBound: &bounds[i], CumulativeCount: new(uint64)}
	}
	for upper, n := range h.Buckets() {
		for i := range buckets {
			if seconds(upper) <= bounds[i] {
				*buckets[i].CumulativeCount += n
			}
		}
	}
	return buckets
}

// seconds is upper in the precision that the bounds are written in.
func seconds(d time.Duration) float64 { return float64(d) / 1e9 }

// native fills in the spans and deltas of h, and returns the count of zeros.
func native(h *dto.Histogram, from timer.Histogram) (zero uint64) {
	last, lastCount := int32(math.MinInt32), int64(0)
	for upper, n := range from.Buckets() {
		if upper <= 0 {
			zero += n
			continue
		}
		index := nativeIndex(seconds(upper))
		if index == last {
			lastCount += int64(n)
			h.PositiveDelta[len(h.PositiveDelta)-1] += int64(n)
			continue
		}
		if spans := h.PositiveSpan; len(spans) > 0 && index == last+1 {
			*spans[len(spans)-1].Length++
		} else {
			offset, length := index, uint32(1)
			if len(spans) > 0 {
				offset = index - last - 1
			}
			h.PositiveSpan = append(spans, &dto.BucketSpan{Offset: &offset, Length: &length})
		}
		h.PositiveDelta = append(h.PositiveDelta, int64(n)-lastCount)
		last, lastCount = index, int64(n)
	}
	if len(h.PositiveSpan) == 0 {
		// Without a span the histogram would pass for one without a native form.
		offset, length := int32(0), uint32(0)
		h.PositiveSpan = []*dto.BucketSpan{{Offset: &offset, Length: &length}}
	}
	return zero
}

// nativeIndex returns the number of the native bucket that v falls into: the
// least i for which v is no greater than 2^(i/8).
func nativeIndex(v float64) int32 {
	return int32(math.Ceil(math.Log2(v) * (1 << schema)))
}
