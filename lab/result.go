package lab

import (
	"math"
	"time"
)

// A Report is what a run has found.
type Report struct {
	Schema  string        `json:"schema"`
	Made    time.Time     `json:"made"`
	Took    time.Duration `json:"took_ns"`
	Short   bool          `json:"short"`
	Switch  bool          `json:"switch_clocksource"` // it was allowed to
	Results []*Result     `json:"results"`
	Claims  []Claim       `json:"claims"`
	// Stopped says why the run ended before its end, if it did.
	Stopped string `json:"stopped,omitempty"`
}

// Schema names the form of a Report as JSON.
const Schema = "detent.lab/1"

// A Result is what one experiment has found.
type Result struct {
	Name    string        `json:"name"`
	Title   string        `json:"title"`
	About   string        `json:"about"`
	Took    time.Duration `json:"took_ns"`
	Figures []Figure      `json:"figures"`
	Plots   []Plot        `json:"plots"`
	// Skipped says of each part that could not be measured why.
	Skipped []string `json:"skipped"`
	// Failed says why the experiment as a whole was not made.
	Failed string `json:"failed,omitempty"`
}

// A Figure is one number: what an article printed, and what was measured here.
type Figure struct {
	// What was measured, of whom (an engine, a clock, a way), in which case.
	What string `json:"what"`
	Who  string `json:"who"`
	Case string `json:"case"`
	Unit Unit   `json:"unit"`
	// Published is what an article printed, and By for whom, if that is not Who.
	Published *float64 `json:"published"`
	By        string   `json:"by,omitempty"`
	// Here is what was measured; nil if it was not.
	Here *float64 `json:"here"`
}

// A Unit is what a figure counts.
type Unit string

// The units.
const (
	Nanoseconds Unit = "ns"
	Bytes       Unit = "B"
	Count       Unit = ""
	PerSecond   Unit = "/s"
	Percent     Unit = "%"
	Cycles      Unit = "cycles"
)

// A Plot is data for a picture.
type Plot struct {
	ID    string   `json:"id"`
	Title string   `json:"title"`
	Kind  PlotKind `json:"kind"`
	Unit  Unit     `json:"unit"`
	// Linear says that bars have a linear scale; else it is logarithmic.
	Linear bool `json:"linear,omitempty"`
	// Labels are those of the bars, or of a heat map's rows.
	Labels []string `json:"labels"`
	// Columns are those of a heat map.
	Columns []string `json:"columns,omitempty"`
	// Series are bars, curves, or a heat map's rows.
	Series []Series `json:"series"`
}

// A PlotKind is how a plot is drawn.
type PlotKind string

// The kinds: bars, one series beside the other; the part of
// values above each duration; the part of values in each class of durations; a matrix.
const (
	Bars      PlotKind = "bars"
	Tails     PlotKind = "tails"
	Histogram PlotKind = "histogram"
	Heat      PlotKind = "heat"
)

// A Series is named values. A curve has points of x and y in place of values.
type Series struct {
	Name   string       `json:"name"`
	Values []float64    `json:"values,omitempty"`
	Points [][2]float64 `json:"points,omitempty"`
}

// add appends a figure.
func (r *Result) add(f Figure) {
	// What is no number has no place in JSON.
	if f.Here != nil && (math.IsNaN(*f.Here) || math.IsInf(*f.Here, 0)) {
		f.Here = nil
	}
	r.Figures = append(r.Figures, f)
}

// skip notes what could not be measured.
func (r *Result) skip(what string, err error) {
	r.Skipped = append(r.Skipped, what+": "+err.Error())
}

// here returns what was measured, or false.
func (r *Result) here(what, who, in string) (float64, bool) {
	if r == nil {
		return 0, false
	}
	for _, f := range r.Figures {
		if f.What == what && f.Who == who && f.Case == in && f.Here != nil {
			return *f.Here, true
		}
	}
	return 0, false
}

func is(v float64) *float64 { return &v }
