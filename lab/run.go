package lab

import (
	"context"
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"time"
)

// An Experiment is one that the articles made, or that their claims ask for.
type Experiment struct {
	Name  string
	Title string
	About string
	// Takes is about how long it takes, on an idle machine.
	Takes func(p Plan) time.Duration
	// run adds to r what it finds, and returns an error if nothing could be measured.
	run func(ctx context.Context, p Plan, r *Result) error
}

// A Plan is how much is measured.
type Plan struct {
	Short   bool
	Rounds  int           // how often each thing is measured, in turn with the others
	Window  time.Duration // for how long at a time
	Procs   []int         // values of GOMAXPROCS
	Pending []int         // numbers of pending timers
	Waiting []int         // numbers of pending contexts
	Garbage int           // pending timers on each P in the benchmarks of package time
	Sleeps  int           // sleeps of each way and duration
	// Switch allows one experiment to change the clocksource of the kernel, for
	// everybody on the machine, and to put it back.
	Switch bool
	// Memory bounds what many pending timers may take, in bytes; 0: what the machine
	// and the control groups of this process leave.
	Memory uint64
}

// Full is the plan of docs/lab.md; Short runs everything in some minutes.
func Full() Plan {
	return Plan{
		Rounds: 5, Window: 100 * time.Millisecond, Procs: procs(),
		Pending: []int{1_000_000, 5_000_000, 10_000_000}, Waiting: concurrencies(), Garbage: 1 << 15, Sleeps: 300,
	}
}

// Short is the plan of a first look.
func Short() Plan {
	return Plan{
		Short: true, Rounds: 3, Window: 10 * time.Millisecond, Procs: []int{1, runtime.NumCPU()},
		Pending: []int{100_000, 1_000_000}, Waiting: concurrencies(), Garbage: 1 << 12, Sleeps: 40,
	}
}

// procs are 1, 2, 4 and the machine's own number; and the one of an article's table, if
// there are as many CPUs.
func procs() []int {
	list := []int{1, 2, 4, runtime.NumCPU()}
	if runtime.NumCPU() > manyProcs {
		list = append(list, manyProcs)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// Options say what to run.
type Options struct {
	Plan  Plan
	Names []string // of experiments; nil: all
	// Progress is called before each experiment, and once more at the end.
	Progress func(Progress)
}

// Progress says how far a run is.
type Progress struct {
	Experiment string // that begins; "" at the end
	Done       int
	Total      int
	Left       time.Duration // an estimate
}

// Select returns the experiments with the given names, in the lab's order.
func Select(names []string) ([]Experiment, error) {
	all := Experiments()
	if names == nil {
		return all, nil
	}
	var list []Experiment
	for _, e := range all {
		if slices.Contains(names, e.Name) {
			list = append(list, e)
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(all, func(e Experiment) bool { return e.Name == name }) {
			return nil, fmt.Errorf("lab: no experiment %q: %w", name, fs.ErrInvalid)
		}
	}
	return list, nil
}

// Run makes the experiments, one after another. What one of them cannot do is in its
// result, and the others go on. When ctx ends, the report holds what was measured
// until then, and says so. The error is that Options are wrong.
//
// It sets GOMAXPROCS and keeps the machine busy: one run at a time, in a program
// that does nothing else.
func Run(ctx context.Context, o Options) (*Report, error) {
	list, err := Select(o.Names)
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	report := &Report{Schema: Schema, Made: begin.UTC().Truncate(time.Second), Short: o.Plan.Short, Switch: o.Plan.Switch, Results: []*Result{}}
	for i, e := range list {
		if ctx.Err() != nil {
			break
		}
		if o.Progress != nil {
			var left time.Duration
			for _, rest := range list[i:] {
				left += rest.Takes(o.Plan)
			}
			o.Progress(Progress{Experiment: e.Name, Done: i, Total: len(list), Left: left})
		}
		began := time.Now()
		r := &Result{Name: e.Name, Title: e.Title, About: e.About, Figures: []Figure{}, Plots: []Plot{}, Skipped: []string{}}
		switch err := e.run(ctx, o.Plan, r); {
		case ctx.Err() != nil:
			r.skip("the rest", context.Cause(ctx))
		case err != nil:
			r.Failed = err.Error()
		}
		r.Took = time.Since(began)
		report.Results = append(report.Results, r)
	}
	if ctx.Err() != nil {
		report.Stopped = context.Cause(ctx).Error()
	}
	if o.Progress != nil {
		o.Progress(Progress{Done: len(report.Results), Total: len(list)})
	}
	report.Claims = judge(report)
	report.Took = time.Since(begin)
	return report, nil
}

// result returns the result of an experiment, nil if it was not made.
func (r *Report) result(name string) *Result {
	for _, x := range r.Results {
		if x.Name == name {
			return x
		}
	}
	return nil
}
