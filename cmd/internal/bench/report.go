package bench

import (
	"encoding/json"
	"io"
	"slices"
	"time"

	"github.com/detent-go/detent/cmd/internal/machine"
)

// Schema names the form of the JSON that a Report is written in. A change
// that a reader could trip over changes the number.
const Schema = "detent.bench/1"

// A Report is all that one run has found out.
type Report struct {
	Schema   string       `json:"schema"`
	Machine  machine.Info `json:"machine"`
	Settings Settings     `json:"settings"`
	Rows     []*Row       `json:"rows"`
	// Missing names what was to be measured and was not.
	Missing []Missing `json:"missing"`
	// Notes say what disturbed a measurement.
	Notes   []string `json:"notes"`
	Summary Summary  `json:"summary"`
	// Stopped says why the run ended before its end, if it did.
	Stopped  string  `json:"stopped,omitempty"`
	ElapsedS float64 `json:"elapsed_s"`
}

// Settings are what the user chose or left as it was.
type Settings struct {
	Form      string   `json:"form"`
	Rounds    int      `json:"rounds"`
	Procs     int      `json:"procs"`
	Scenarios []string `json:"scenarios"`
}

// Missing is something that was not measured, and why. Failed tells what
// went wrong from what this machine does not have.
type Missing struct {
	Scenario string `json:"scenario"`
	Case     string `json:"case"`
	Reason   string `json:"reason"`
	Failed   bool   `json:"failed"`
}

// Summary counts the verdicts.
type Summary struct {
	Better int `json:"better"`
	Same   int `json:"same_within_noise"`
	Worse  int `json:"worse"`
}

// Failed counts what went wrong.
func (r *Report) Failed() int {
	n := 0
	for _, m := range r.Missing {
		if m.Failed {
			n++
		}
	}
	return n
}

// finish sums the rows up.
func (r *Report) finish(elapsed time.Duration) {
	r.ElapsedS = elapsed.Seconds()
	r.Summary = Summary{}
	for _, row := range r.Rows {
		switch row.Verdict {
		case Better:
			r.Summary.Better++
		case Worse:
			r.Summary.Worse++
		default:
			r.Summary.Same++
		}
	}
}

// missing notes what was not measured, once.
func (r *Report) missing(m Missing) {
	if !slices.Contains(r.Missing, m) {
		r.Missing = append(r.Missing, m)
	}
}

// with returns the rows that have the verdict.
func (r *Report) with(v Verdict) []*Row {
	var rows []*Row
	for _, row := range r.Rows {
		if row.Verdict == v {
			rows = append(rows, row)
		}
	}
	return rows
}

// WriteJSON writes the report for machines.
func (r *Report) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}
