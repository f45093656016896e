package trace

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestQuantile: against the sorted values, for random ones of every magnitude.
func TestQuantile(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		var h Histogram
		var all []time.Duration
		for range 1 + r.IntN(100) {
			d := time.Duration(r.Uint64() >> (25 + r.IntN(39)))
			all = append(all, d)
			h.Observe(d)
		}
		slices.Sort(all)
		for _, q := range []float64{0, 0.01, 0.5, 0.9, 0.99, 1} {
			rank := min(int(q*float64(len(all))), len(all)-1)
			got, want := h.Quantile(q), all[rank]
			if got < want || got > 2*want && got != 0 {
				t.Errorf("quantile %v of %v is %v, want at least %v and at most twice that", q, all, got, want)
			}
		}
		if h.Max != all[len(all)-1] || h.Count != uint64(len(all)) {
			t.Errorf("%d values up to %v, want %d up to %v", h.Count, h.Max, len(all), all[len(all)-1])
		}
	}
}

func TestHistogramEdges(t *testing.T) {
	var h Histogram
	if h.Quantile(0.5) != 0 || h.Mean() != 0 {
		t.Error("an empty histogram has values")
	}
	h.Observe(-time.Second)
	h.Observe(1 << 62)
	if h.Buckets[0] != 1 || h.Buckets[histogramBuckets-1] != 1 || h.Quantile(1) != 1<<62 {
		t.Errorf("%+v", h)
	}
}

func TestHistogramSince(t *testing.T) {
	var h Histogram
	h.Observe(3)
	earlier := h
	h.Observe(100)
	d := h.Since(&earlier)
	if d.Count != 1 || d.Sum != 100 || d.Buckets[2] != 0 || d.Buckets[7] != 1 {
		t.Errorf("%+v", d)
	}
	if got := h.Since(nil); got != h {
		t.Errorf("since nothing: %+v", got)
	}
	// Another process under the same id has less than there was.
	if d := earlier.Since(&h); d.Count != 0 || d.Sum != 0 {
		t.Errorf("%+v", d)
	}
	earlier.Add(&d)
	if earlier != h {
		t.Errorf("%+v, want %+v", earlier, h)
	}
}

func TestHistogramJSON(t *testing.T) {
	var h, back Histogram
	h.Observe(5)
	h.Observe(time.Second)
	b, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &back); err != nil || back != h {
		t.Errorf("%s: %+v, %v", b, back, err)
	}
}
