package explain

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/detent-go/detent/probe"
	"github.com/detent-go/detent/trace"
)

// Options say what to explain. PID is required.
type Options struct {
	PID int
	// Watch is how long the process is watched; 0 means 5 seconds.
	Watch time.Duration
	// Progress, if not nil, is told what is being done.
	Progress func(string)
}

// machineChecks are those whose findings may be the cause of a process's.
var machineChecks = []string{"clocksource", "clocks", "contention"}

// Run watches the process, measures the machine, and judges. It returns the error
// of trace.Start where tracing is not possible.
func Run(ctx context.Context, o Options) (*Report, error) {
	if o.Watch <= 0 {
		o.Watch = 5 * time.Second
	}
	say := o.Progress
	if say == nil {
		say = func(string) {}
	}
	say(fmt.Sprintf("watching process %d for %v", o.PID, o.Watch))
	seen, err := observe(ctx, o)
	if err != nil {
		return nil, err
	}
	// After the watching: measuring keeps a CPU busy.
	say("measuring this machine's clocks")
	facts := Facts{Elapsed: seen.Elapsed, Clocksource: seen.Clocksource}
	r := &Report{PID: o.PID, Watched: seen.Elapsed}
	if p := seen.Process(o.PID); p != nil {
		facts.Process = *p
		r.Comm, r.Exe, r.Process = p.Comm, p.Exe, p
	} else {
		return nil, fmt.Errorf("process %d has ended", o.PID)
	}
	if err := measure(ctx, &facts); err != nil {
		r.Unseen = append(r.Unseen, err.Error())
	}
	r.Cost = facts.Cost
	r.Found = Judge(facts)
	if r.Found == nil {
		r.Found = []probe.Finding{}
	}
	r.Worst = Worst(r.Found)
	r.Symptom = symptoms(&facts)
	r.Verdict = r.verdict()
	r.Unseen = append(r.Unseen, unseen(seen)...)
	if g := facts.Process.Go; g != nil && g.Absent != "" {
		r.Unseen = append(r.Unseen, "the Go scheduler's state: "+g.Absent)
	}
	r.Overhead = facts.cpu(seen.Overhead())
	return r, nil
}

// observe watches one process with everything that is to be known of it. How long
// its system calls take in the kernel is measured last, by itself and for a moment:
// it makes each of them dearer, and what a slow clock costs must not be what
// looking at it costs.
func observe(ctx context.Context, o Options) (*trace.Snapshot, error) {
	d, err := difference(ctx, o.PID, o.Watch, trace.WatchClockCalls|trace.WatchLateness|trace.WatchTimers|
		trace.WatchGoScheduler|trace.WatchProfile|trace.WatchGoTimers)
	if err != nil {
		return nil, err
	}
	p := d.Process(o.PID)
	if p == nil || len(p.ClockCalls) == 0 {
		return d, nil
	}
	times, err := difference(ctx, o.PID, min(o.Watch/5, 500*time.Millisecond), trace.WatchClockCalls|trace.WatchCallTimes)
	if err != nil {
		return nil, err
	}
	if q := times.Process(o.PID); q != nil {
		for i := range p.ClockCalls {
			for _, c := range q.ClockCalls {
				if c.Call == p.ClockCalls[i].Call && c.ID == p.ClockCalls[i].ID {
					p.ClockCalls[i].Took = c.Took
				}
			}
		}
	}
	return d, nil
}

// difference watches the process for a while, and returns what happened in it.
func difference(ctx context.Context, pid int, watch time.Duration, features trace.Features) (*trace.Snapshot, error) {
	tracer, err := trace.Start(context.WithoutCancel(ctx), &trace.Options{PIDs: []int{pid}, Features: features})
	if err != nil {
		return nil, err
	}
	defer tracer.Close()
	first, err := tracer.Snapshot()
	if err != nil {
		return nil, err
	}
	select {
	case <-time.After(watch):
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	last, err := tracer.Snapshot()
	if err != nil {
		return nil, err
	}
	d := last.Since(first)
	if d.Process(pid) == nil {
		// It did nothing at all: that is a state too.
		if p := last.Process(pid); p != nil && !p.Ended {
			d.Processes = append(d.Processes, trace.Process{PID: p.PID, Comm: p.Comm, Exe: p.Exe, Quota: p.Quota})
		}
	}
	return d, nil
}

// measure asks the machine what a healthy process's clock costs here, and what is
// wrong with all of them.
func measure(ctx context.Context, f *Facts) error {
	report, err := probe.Run(ctx, probe.Options{Effort: probe.Quick, Checks: machineChecks})
	if report == nil {
		return err
	}
	f.Machine = report.Findings()
	f.Cost = CostOf(report)
	return err
}

// unseen lists the hooks that are absent, and what was dropped. That a program is no
// Go program is not worth a word.
func unseen(s *trace.Snapshot) []string {
	var list []string
	for _, h := range s.Hooks {
		if h.Absent != "" && !strings.Contains(h.Absent, "not a Go program") {
			list = append(list, h.Name+": "+h.Absent)
		}
	}
	for _, what := range slices.Sorted(maps.Keys(s.Dropped)) {
		list = append(list, fmt.Sprintf("dropped, %s: %d", what, s.Dropped[what]))
	}
	return list
}
