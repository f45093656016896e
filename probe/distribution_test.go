package probe

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/detent-go/detent/internal/hist"
)

func TestDistribution(t *testing.T) {
	var values []int64
	var h hist.Hist
	for i := int64(1000); i >= 1; i-- {
		values = append(values, i*1000)
		h.Record(i * 1000)
	}
	d := distributionOf(values)
	if d.Count != 1000 || d.Min != 1000 || d.P50 != 500_000 || d.P90 != 900_000 || d.P99 != 990_000 || d.P999 != 999_000 || d.Max != 1_000_000 || d.Mean != 500_500 {
		t.Errorf("%+v", d)
	}
	n := uint64(0)
	for i, b := range d.Buckets {
		n += b.Count
		if b.From > b.To || i > 0 && b.From <= d.Buckets[i-1].To || b.Count == 0 {
			t.Errorf("bucket %+v", b)
		}
	}
	if n != 1000 {
		t.Errorf("%d values in buckets", n)
	}
	streamed := distributionOfHist(&h)
	if streamed.P50 < d.P50 || streamed.P50 > d.P50*9/8 || streamed.Max != d.Max || streamed.Mean != d.Mean {
		t.Errorf("streamed %+v", streamed)
	}
	if e := distributionOf(nil); e.Count != 0 || e.Max != 0 {
		t.Errorf("of nothing: %+v", e)
	}
	j, err := json.Marshal(Distribution{})
	if err != nil || !strings.Contains(string(j), `"buckets":[]`) || !strings.Contains(string(j), `"p999_ns":0`) {
		t.Errorf("%s, %v", j, err)
	}
}

func TestQuantile(t *testing.T) {
	for _, test := range []struct {
		values []int64
		q      float64
		want   int64
	}{
		{[]int64{1, 2, 3}, 0.5, 2}, {[]int64{1, 2, 3, 4}, 0.5, 2}, {[]int64{1}, 0.999, 1}, {[]int64{1, 2}, 0, 1}, {[]int64{1, 2}, 1, 2}, {nil, 0.5, 0},
	} {
		if got := quantile(test.values, test.q); got != test.want {
			t.Errorf("quantile(%v, %v) = %d, want %d", test.values, test.q, got, test.want)
		}
	}
}

func TestRegress(t *testing.T) {
	s := regress([]float64{0, 1, 2, 3}, []float64{1, 3, 5, 7})
	if math.Abs(s.value-2) > 1e-12 || s.err > 1e-9 {
		t.Errorf("%+v", s)
	}
	s = regress([]float64{0, 1, 2, 3}, []float64{1, -1, 1, -1})
	if math.Abs(s.value) > s.err {
		t.Errorf("noise has a slope: %+v", s)
	}
	for _, x := range [][]float64{nil, {1}, {1, 2}, {1, 1, 1}} {
		if s := regress(x, make([]float64, len(x))); !math.IsInf(s.err, 1) {
			t.Errorf("%v: %+v", x, s)
		}
	}
}
