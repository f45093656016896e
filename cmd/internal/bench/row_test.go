package bench

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
)

func TestVerdict(t *testing.T) {
	lower := spec{metric: "op_ns", unit: unitNs}
	higher := spec{metric: "ops_per_s", unit: unitCount, higher: true}
	diff := spec{metric: "late_p50_us", unit: unitUs, diff: true, resolution: 100}
	more := spec{metric: "ops_per_s", unit: unitCount, higher: true, diff: true, resolution: 1}
	loose := spec{metric: "growth_ratio", unit: unitRatio, higher: true, tolerance: 0.25}
	for _, c := range []struct {
		name          string
		sp            spec
		other, detent []float64
		want          Verdict
	}{
		{"half the cost", lower, []float64{100, 100, 100, 100, 100}, []float64{50, 50, 50, 50, 50}, Better},
		{"twice the cost", lower, []float64{50, 50, 50, 50, 50}, []float64{100, 100, 100, 100, 100}, Worse},
		{"less than the tolerance", lower, []float64{102, 102, 102, 102, 102}, []float64{100, 100, 100, 100, 100}, Same},
		{"one of five against it", lower, []float64{100, 100, 100, 100, 40}, []float64{50, 50, 50, 50, 50}, Same},
		{"one of seven against it", lower, []float64{100, 100, 100, 100, 100, 100, 40}, []float64{50, 50, 50, 50, 50, 50, 50}, Better},
		{"one of seven for it", lower, []float64{40, 40, 40, 40, 40, 40, 100}, []float64{50, 50, 50, 50, 50, 50, 50}, Worse},
		{"none instead of some", lower, []float64{3, 2, 3}, []float64{0, 0, 0}, Better},
		{"some instead of none", lower, []float64{0, 0, 0}, []float64{3, 2, 3}, Worse},
		{"none and none", lower, []float64{0, 0, 0}, []float64{0, 0, 0}, Same},
		{"twice as many", higher, []float64{50, 50, 50}, []float64{100, 100, 100}, Better},
		{"half as many", higher, []float64{100, 100, 100}, []float64{50, 50, 50}, Worse},
		{"within the resolution", diff, []float64{1, 1, 1}, []float64{90, 90, 90}, Same},
		{"later by more", diff, []float64{1, 1, 1}, []float64{190, 200, 210}, Worse},
		{"earlier by more", diff, []float64{1000, 1000, 1000}, []float64{190, 200, 210}, Better},
		{"now earlier, now later", diff, []float64{1000, 1000, 1000}, []float64{1, 1, 2000}, Same},
		{"more by difference", more, []float64{1, 1, 1}, []float64{5, 5, 5}, Better},
		{"fewer by difference", more, []float64{5, 5, 5}, []float64{1, 1, 1}, Worse},
		{"a fifth less", loose, []float64{2, 2, 2}, []float64{1.61, 1.61, 1.61}, Same},
		{"more than a fifth less", loose, []float64{2, 2, 2}, []float64{1.5, 1.5, 1.5}, Worse},
	} {
		if got := c.sp.row("s", "c", c.other, c.detent).Verdict; got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestRowPairs: figures are compared round by round, and one that has no
// counterpart is left out.
func TestRowPairs(t *testing.T) {
	r := spec{metric: "op_ns"}.row("s", "c", []float64{10, 40, 90, 1}, []float64{10, 20, 30})
	if want := []Figure{1, 2, 3}; !slices.Equal(r.Compare.Pairs, want) {
		t.Errorf("pairs %v, want %v", r.Compare.Pairs, want)
	}
	if r.Compare.Median != 2 || r.Compare.Low != 1 || r.Compare.High != 3 {
		t.Errorf("compared to %+v", r.Compare)
	}
	if r.other() != 40 || r.detent() != 20 {
		t.Errorf("medians %v and %v, want 40 and 20", r.other(), r.detent())
	}
}

func TestRowJSON(t *testing.T) {
	r := spec{metric: "gc_ms", label: "runtime.GC"}.row("gc", "100 pending", []float64{3, 4, 3}, []float64{0, 0, 0})
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Median  map[string]float64   `json:"median"`
		Rounds  map[string][]float64 `json:"rounds"`
		Compare struct {
			Kind   string     `json:"kind"`
			Median *float64   `json:"median"`
			Pairs  []*float64 `json:"pairs"`
		} `json:"compare"`
		Verdict string `json:"verdict"`
	}
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	if got.Median["time_gc_ms"] != 3 || len(got.Rounds["detent_gc_ms"]) != 3 {
		t.Errorf("figures not under the side's and the metric's names: %s", b)
	}
	if got.Compare.Median != nil || len(got.Compare.Pairs) != 3 || got.Compare.Pairs[0] != nil {
		t.Errorf("an infinite ratio is not null: %s", b)
	}
	if got.Compare.Kind != "ratio" || got.Verdict != "better" {
		t.Errorf("compared by %s: %s", got.Compare.Kind, got.Verdict)
	}
}

func TestFormat(t *testing.T) {
	for _, c := range []struct {
		u    unit
		v    float64
		want string
	}{
		{unitNs, 204.4, "204 ns"},
		{unitNs, 1040, "1.04 us"},
		{unitUs, 1040, "1.04 ms"},
		{unitUs, 0, "0"},
		{unitMs, 30, "30 ms"},
		{unitS, 0.4, "400 ms"},
		{unitS, 3.6, "3.6 s"},
		{unitBytes, 112, "112 B"},
		{unitCount, 845000, "845000"},
		{unitCount, 0.0001, "0"},
		{unitRatio, 1.3, "1.3x"},
		{unitNs, math.NaN(), "-"},
	} {
		if got := c.u.format(c.v); got != c.want {
			t.Errorf("format(%v) = %q, want %q", c.v, got, c.want)
		}
	}
	for n, want := range map[int]string{0: "0", 100: "100", 1500: "1.5k", 250_000: "250k", 1_000_000: "1M", 10_000_000: "10M", 1234: "1234"} {
		if got := count(n); got != want {
			t.Errorf("count(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestFormatSpread(t *testing.T) {
	by := func(sp spec, other, detent []float64) string {
		middle, spread := formatSpread(sp.row("s", "c", other, detent))
		return middle + " " + spread
	}
	if got, want := by(spec{metric: "op_ns"}, []float64{20, 40, 60}, []float64{10, 10, 10}), "4x 2 .. 6"; got != want {
		t.Errorf("ratio %q, want %q", got, want)
	}
	if got := by(spec{metric: "op_ns"}, []float64{20, 20, 20}, []float64{0, 0, 0}); !strings.HasPrefix(got, ">999x") {
		t.Errorf("infinite ratio %q", got)
	}
	diff := spec{metric: "late_p50_us", unit: unitUs, diff: true}
	if got, want := by(diff, []float64{20, 20, 20}, []float64{10, 20, 70}), "0 -10 us .. +50 us"; got != want {
		t.Errorf("difference %q, want %q", got, want)
	}
}
