package accuracy

import (
	"context"
	"time"

	"github.com/detent-go/detent/cmd/internal/load"
	"github.com/detent-go/detent/cmd/internal/machine"
)

// Schema names the form of the JSON that a Report is written in.
const Schema = "detent.accuracy/1"

// A Plan is how much is measured.
type Plan struct {
	Rounds int           // how often each is measured, in turn with the others
	Window time.Duration // for how long at a time
	Rates  []int         // of the rate limiters, events a second
}

// Full is the plan behind docs/accuracy.md; Quick a first look.
func Full() Plan { return Plan{5, 400 * time.Millisecond, []int{5_000, 10_000, 20_000}} }

// Quick is a first look.
func Quick() Plan { return Plan{1, 100 * time.Millisecond, []int{20_000}} }

// paced are the ways that the rate limiters run on.
var paced = map[string]bool{wayTime: true, wayAuto: true, waySpin: true}

// Takes is about how long a run of the plan takes.
func (p Plan) Takes() time.Duration {
	windows := len(Ways())*len(load.Kinds()) + len(paced)*len(limiters)*len(p.Rates)
	return time.Duration(windows*p.Rounds) * p.Window
}

// A Report is what a run has found.
type Report struct {
	Schema  string       `json:"schema"`
	Machine machine.Info `json:"machine"`
	Made    time.Time    `json:"made"`
	Plan    Plan         `json:"plan"`
	Cells   []*Cell      `json:"lateness"`
	Paces   []*Pace      `json:"rates"`
	Missing []Missing    `json:"missing"`
	// Stopped says why the run ended before its end, if it did.
	Stopped string `json:"stopped,omitempty"`
}

// Missing is a way that this machine does not have, and why.
type Missing struct {
	Way    string `json:"way"`
	Reason string `json:"reason"`
}

// Run measures by the plan, and tells step what it is about to do. When ctx ends,
// it returns what it has, and the report says so.
func Run(ctx context.Context, plan Plan, step func(string)) (*Report, error) {
	r := &Report{
		Schema: Schema, Machine: machine.Read(), Made: time.Now().UTC().Truncate(time.Second), Plan: plan,
		Missing: []Missing{},
	}
	ways, missing := openAll(Ways())
	r.Missing = append(r.Missing, missing...)
	var err error
	if r.Cells, err = lateness(ctx, plan, ways, step); err == nil {
		var some []opened
		for _, w := range ways {
			if paced[w.Name] {
				some = append(some, w)
			}
		}
		r.Paces, err = pace(ctx, plan, some, step)
	}
	if err != nil {
		r.Stopped = err.Error()
	}
	return r, closeAll(ways)
}

// Early is how many sleeps ended before their time.
func (r *Report) Early() int {
	n := 0
	for _, c := range r.Cells {
		n += c.Early
	}
	return n
}
