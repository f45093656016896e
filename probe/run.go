package probe

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/detent-go/detent/internal/hostfs"
)

// Effort says how long a run may take.
type Effort int8

// In ascending order; the zero value is Normal.
const (
	Quick    Effort = iota - 1 // under 3 s
	Normal                     // under 15 s
	Thorough                   // minutes
)

// Options say what to look at. The zero value looks at everything, on this machine.
type Options struct {
	Effort Effort
	// Checks names those to run; nil: all. Unknown names are an error.
	Checks []string
	// Progress is called before each check, and once more at the end, from the
	// goroutine that called Run.
	Progress func(Progress)
	// Root is the directory "/" of another machine, with what was copied of its
	// /proc, /sys, /dev and /boot; only checks that read files run over it. nil:
	// this machine.
	Root fs.FS
}

// Progress says how far a run is.
type Progress struct {
	Check string        // the one that begins; "" at the end
	Done  int           // checks that have ended
	Total int           // checks that the run makes
	Left  time.Duration // an estimate for the rest
}

// Run makes the checks one after another, so that none disturbs another, and
// returns what they found. The error is that of ctx, with the report as far as it
// went, or that Options are wrong, with no report. Several runs at a time disturb
// each other's measurements.
func Run(ctx context.Context, o Options) (*Report, error) {
	checks, err := choose(o.Checks)
	if err != nil {
		return nil, err
	}
	e := &Env{Root: o.Root, Own: o.Root == nil, Effort: o.Effort, Arch: runtime.GOARCH}
	if e.Own {
		e.Root = os.DirFS("/")
	} else {
		e.Arch = hostfs.Arch(e.Root)
	}
	return run(ctx, e, checks, o.Effort.limit(), o.Progress)
}

// run makes the checks within a time, see allot.
func run(ctx context.Context, e *Env, checks []Check, within time.Duration, progress func(Progress)) (*Report, error) {
	start := time.Now()
	report := &Report{Version: ReportVersion, Started: start, Machine: readMachine(e)}
	for i, c := range checks {
		if ctx.Err() != nil {
			break
		}
		if progress != nil {
			progress(Progress{Check: c.Name, Done: i, Total: len(checks), Left: left(checks[i:], e)})
		}
		began := time.Now()
		r := c.runWithin(ctx, e, allot(checks[i:], e, within-began.Sub(start)))
		r.Check, r.Took = c.Name, since(began)
		report.Results = append(report.Results, r)
		report.Took = since(start)
	}
	if e.Own && clockStopped() != nil {
		// Times read from such a clock are no times at all.
		report.Started, report.Took = time.Time{}, 0
		for i := range report.Results {
			report.Results[i].Took = 0
		}
	}
	report.reconcile()
	report.relate()
	if err := ctx.Err(); err != nil {
		return report, err
	}
	if progress != nil {
		progress(Progress{Done: len(checks), Total: len(checks)})
	}
	return report, nil
}

// since returns the time since t; 0, should the clock be so faulty as to have stood
// before t.
func since(t time.Time) time.Duration { return max(time.Since(t), 0) }

func choose(names []string) ([]Check, error) {
	all := Checks()
	if names == nil {
		return all, nil
	}
	var chosen []Check
	for _, c := range all {
		if slices.Contains(names, c.Name) {
			chosen = append(chosen, c)
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(all, func(c Check) bool { return c.Name == name }) {
			return nil, fmt.Errorf("probe: no check %q: %w", name, fs.ErrInvalid)
		}
	}
	return chosen, nil
}

// left is what the checks take together.
func left(checks []Check, e *Env) time.Duration {
	var sum time.Duration
	for _, c := range checks {
		if c.Budget != nil {
			sum += c.Budget(e)
		}
	}
	return sum
}
