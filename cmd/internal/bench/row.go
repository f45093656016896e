package bench

import (
	"encoding/json"
	"math"
)

// A Verdict says how detent did in one row.
type Verdict string

const (
	Better Verdict = "better"
	Same   Verdict = "same within noise"
	Worse  Verdict = "worse"
)

// A Comparison says how the two sides of a row are set against each other.
type Comparison string

const (
	// ByRatio is how many times better detent is, whichever direction is good.
	ByRatio Comparison = "ratio"
	// ByDifference is detent minus the other, in the metric's own unit: for
	// figures that may well be zero, and for bounds that are absolute.
	ByDifference Comparison = "difference"
)

// A Row is one line of the result: one metric of one case, measured for
// detent and for what it is held against.
type Row struct {
	Scenario string `json:"scenario"`
	Case     string `json:"case"`
	Label    string `json:"label"`
	// Metric names the figure and ends in its unit.
	Metric  string `json:"metric"`
	Lower   bool   `json:"lower_is_better"`
	Against string `json:"against"`

	// Median and Rounds have two fields each: the metric's name behind the
	// side's, as in time_op_ns and detent_op_ns.
	Median map[string]float64   `json:"median"`
	Rounds map[string][]float64 `json:"rounds"`

	Compare Spread  `json:"compare"`
	Verdict Verdict `json:"verdict"`

	spec spec
}

// A Spread is the comparison of the rounds, pair by pair.
type Spread struct {
	Kind   Comparison `json:"kind"`
	Median Figure     `json:"median"`
	Low    Figure     `json:"low"`
	High   Figure     `json:"high"`
	Pairs  []Figure   `json:"pairs"`
}

// A Figure is a ratio that may be infinite, which JSON has no number for: it
// is null there.
type Figure float64

func (f Figure) MarshalJSON() ([]byte, error) {
	if math.IsInf(float64(f), 0) || math.IsNaN(float64(f)) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(f))
}

// name is the row's in its scenario.
func (r *Row) name() string {
	if r.Case == "" {
		return r.Label
	}
	return r.Case + ": " + r.Label
}

// other is the side's figures that detent's are held against.
func (r *Row) other() float64  { return r.Median[r.Against+"_"+r.Metric] }
func (r *Row) detent() float64 { return r.Median[Detent+"_"+r.Metric] }

// A spec says what a row's figures mean and how they are judged.
type spec struct {
	label   string // what a person reads
	metric  string
	unit    unit
	higher  bool   // more is better
	against string // Time if empty

	// By ratio, medians within a factor of 1+tolerance are the same. By
	// difference (diff set) those within resolution are.
	diff       bool
	tolerance  float64
	resolution float64
}

// tolerance is what two medians may differ by and still count as the same:
// where code happens to lie in memory does as much.
const tolerance = 0.05

// row compares the figures of one case, pair by pair.
func (sp spec) row(scenario, name string, other, detent []float64) *Row {
	against := sp.against
	if against == "" {
		against = Time
	}
	n := min(len(other), len(detent))
	other, detent = other[:n], detent[:n]
	r := &Row{
		Scenario: scenario, Case: name, Label: sp.label,
		Metric: sp.metric, Lower: !sp.higher, Against: against,
		Median: map[string]float64{
			against + "_" + sp.metric: median(other),
			Detent + "_" + sp.metric:  median(detent),
		},
		Rounds: map[string][]float64{
			against + "_" + sp.metric: other,
			Detent + "_" + sp.metric:  detent,
		},
		spec: sp,
	}
	pairs := make([]float64, n)
	for i := range pairs {
		pairs[i] = sp.compare(other[i], detent[i])
		r.Compare.Pairs = append(r.Compare.Pairs, Figure(pairs[i]))
	}
	m := median(pairs)
	low, high := interval(pairs)
	r.Compare.Kind = ByRatio
	if sp.diff {
		r.Compare.Kind = ByDifference
	}
	r.Compare.Median, r.Compare.Low, r.Compare.High = Figure(m), Figure(low), Figure(high)
	r.Verdict = sp.verdict(m, low, high)
	return r
}

// compare sets one round's figures against each other.
func (sp spec) compare(other, detent float64) float64 {
	switch {
	case sp.diff:
		return detent - other
	case other == detent: // both zero too
		return 1
	case sp.higher:
		return detent / other
	default:
		return other / detent
	}
}

// verdict is better or worse only where the median is past the tolerance and
// the whole interval lies on the same side.
func (sp spec) verdict(m, low, high float64) Verdict {
	if sp.diff {
		if sp.higher {
			m, low, high = -m, -high, -low
		}
		switch {
		case high < 0 && m <= -sp.resolution:
			return Better
		case low > 0 && m >= sp.resolution:
			return Worse
		}
		return Same
	}
	t := sp.tolerance
	if t == 0 {
		t = tolerance
	}
	switch {
	case low > 1 && m >= 1+t:
		return Better
	case high < 1 && m <= 1/(1+t):
		return Worse
	}
	return Same
}
