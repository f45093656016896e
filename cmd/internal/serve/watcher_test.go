package serve

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/detent-go/detent/cmd/internal/explain"
	"github.com/detent-go/detent/probe"
	"github.com/detent-go/detent/trace"
)

// snapshot is what a second of a tracer may have seen.
func snapshot() *trace.Snapshot {
	late := trace.Lateness{Kind: trace.KindEpoll}
	late.Total.Observe(3 * time.Millisecond)
	late.RunQueue.Observe(2 * time.Millisecond)
	return &trace.Snapshot{
		Elapsed: 2 * time.Second,
		Hooks:   []trace.Hook{{Name: "tp_btf/x", Time: time.Millisecond}, {Name: "tp_btf/y", Absent: "no"}},
		Processes: []trace.Process{
			{PID: 1, Comm: "quiet"},
			{PID: 2, Comm: "sick", ClockCalls: []trace.ClockCalls{{
				Call: "clock_gettime", Clock: "monotonic", Count: 200_000, Reason: trace.ReasonDirect,
				Stacks: []trace.Stack{{Count: 9, Frames: []trace.Frame{{PC: 1}, {Func: "main.loop", File: "main.go", Line: 7}}}},
			}}, Lateness: []trace.Lateness{late}},
			{PID: 3, Comm: "cpu-time", ClockCalls: []trace.ClockCalls{{Count: 1_000_000, Reason: trace.ReasonClock}}},
			{PID: 4, Comm: "few", ClockCalls: []trace.ClockCalls{{Count: 100, Reason: trace.ReasonNoVDSO}}},
			{PID: 5, Comm: "timers", Timers: []trace.TimerUse{{Kind: trace.KindEpoll, Armed: 20, Expired: 10, Woken: 6}}},
		},
		Dropped: map[string]uint64{"processes": 2},
	}
}

// TestJudge: a process has the findings that detent explain has of it, with its name
// and number; this process has none, whatever it does.
func TestJudge(t *testing.T) {
	d := snapshot()
	j := judge(d, nil, 4711)
	var p trace.Process
	for _, x := range d.Processes {
		if x.Comm == "sick" {
			p = x
		}
	}
	want := explain.Judge(explain.Facts{Process: p, Elapsed: d.Elapsed})
	if len(want) != 1 || want[0].ID != "explain.direct-calls" {
		t.Fatalf("%+v", want)
	}
	i := slices.IndexFunc(j.findings, func(f probe.Finding) bool { return f.ID == want[0].ID })
	if i < 0 {
		t.Fatalf("%+v", j.findings)
	}
	f := j.findings[i]
	if f.Title != "sick (PID 2): "+want[0].Title || f.Severity != want[0].Severity ||
		!slices.Equal(f.Evidence, want[0].Evidence) || !slices.Equal(f.Remedy, want[0].Remedy) {
		t.Errorf("%+v, want %+v", f, want[0])
	}
	if !strings.Contains(f.Title, "main.loop (main.go:7)") {
		t.Errorf("the place is not named: %s", f.Title)
	}
	ids := func(j judgement) (list []string) {
		for _, f := range j.findings {
			list = append(list, f.ID)
		}
		return list
	}
	if got := ids(j); !slices.Equal(got, []string{"explain.direct-calls", "explain.clock-not-on-vdso", "explain.no-vdso"}) {
		t.Errorf("%q", got)
	}
	if got := ids(judge(d, nil, 2)); slices.Contains(got, "explain.direct-calls") {
		t.Errorf("it has judged itself: %q", got)
	}
}

// TestJudgeMany: the page shows the worst, the counts are of all.
func TestJudgeMany(t *testing.T) {
	var many trace.Snapshot
	many.Elapsed = time.Second
	for pid := range 100 {
		p := trace.Process{PID: pid + 1, ClockCalls: []trace.ClockCalls{{Count: 1 << 20, Reason: trace.ReasonNoVDSO}}}
		if pid == 77 {
			p.ClockCalls[0].Reason = trace.ReasonUnknown // which is never critical
		}
		p.Ended = pid == 99
		many.Processes = append(many.Processes, p)
	}
	many.Processes[50].CPU = time.Second
	j := judge(&many, nil, 0)
	if len(j.findings) != maxAlike+1 || j.findings[0].Severity != probe.Critical || !strings.Contains(j.findings[0].Title, "(PID 51)") {
		t.Errorf("%d findings of 100 processes: %+v", len(j.findings), j.findings[0])
	}
	if last := j.findings[maxAlike-1]; !strings.HasSuffix(last.Detail, "It is so of 95 processes more.") {
		t.Errorf("the others are not told of: %s", last.Detail)
	}
	if n := j.counts[kindOfFinding{"explain.no-vdso", probe.Critical}]; n != 98 {
		t.Errorf("%d processes are counted: %v", n, j.counts)
	}
	list := processesOf(&many, j)
	if len(list) != maxShown || !slices.Equal(list[0].Findings, []string{"explain.no-vdso"}) {
		t.Errorf("%d processes shown of 100: %+v", len(list), list[0])
	}
}

// TestJudgeBecause: what the machine is at fault for names the machine's finding,
// which the probe shows.
func TestJudgeBecause(t *testing.T) {
	d := snapshot()
	for i := range d.Processes {
		for k := range d.Processes[i].ClockCalls {
			d.Processes[i].ClockCalls[k].Reason = trace.ReasonClocksource
		}
	}
	r := &probe.Report{Results: []probe.Result{{Findings: []probe.Finding{{ID: "clocksource.no-vdso", Severity: probe.Critical}}}}}
	for _, f := range judge(d, r, 0).findings {
		if f.ID != "explain.clocksource" || f.Because != "clocksource.no-vdso" {
			t.Errorf("%+v", f)
		}
	}
}

// TestProcessesOf: those with findings come first, then the busiest; and each says
// where its lateness is from.
func TestProcessesOf(t *testing.T) {
	d := snapshot()
	list := processesOf(d, judge(d, nil, 0))
	if len(list) != 4 || list[1].PID != 2 || list[1].ClockCalls != 100_000 || list[1].Late < 3*time.Millisecond || list[1].LateBy != "run queue" {
		t.Errorf("%+v", list)
	}
	if list[3].PID != 5 || list[3].Timers != 10 || list[3].Wakeups != 3 || list[3].LateBy != "" || len(list[3].Findings) > 0 {
		t.Errorf("%+v", list[3])
	}
	if first := processesOf(d, judge(d, nil, 3)); first[0].PID != 2 {
		t.Errorf("%+v is before one with a finding", first[0])
	}
	// One that does nothing but suffer.
	still := trace.Process{PID: 6, Comm: "still", Quota: &trace.Quota{Quota: 1, Period: 2, Periods: 10, Throttles: 9}}
	d.Processes = append(d.Processes, still)
	list = processesOf(d, judge(d, nil, 0))
	if !slices.ContainsFunc(list, func(p Process) bool { return p.PID == 6 && slices.Equal(p.Findings, []string{"explain.throttled"}) }) {
		t.Errorf("%+v", list)
	}
}

// TestWatcherMetrics: counts add up over the looks, and no series is a process's.
func TestWatcherMetrics(t *testing.T) {
	w := NewWatcher(slog.New(slog.DiscardHandler))
	if n := testutil.CollectAndCount(w); n != 0 {
		t.Errorf("%d metrics before the first look", n)
	}
	for range 2 {
		w.add(snapshot(), snapshot())
	}
	if problems, err := testutil.CollectAndLint(w); err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
	const want = `
# HELP detent_trace_clock_calls_total System calls of all processes that read a clock, by why they are made.
# TYPE detent_trace_clock_calls_total counter
detent_trace_clock_calls_total{reason="clock-not-on-vdso"} 2e+06
detent_trace_clock_calls_total{reason="direct-call"} 400000
detent_trace_clock_calls_total{reason="no-vdso"} 200
# HELP detent_trace_dropped_total What could not be kept, by what it was.
# TYPE detent_trace_dropped_total counter
detent_trace_dropped_total{what="processes"} 2
# HELP detent_trace_hook_seconds_total CPU time that each hook took.
# TYPE detent_trace_hook_seconds_total counter
detent_trace_hook_seconds_total{hook="tp_btf/x"} 0.001
`
	d := snapshot()
	w.count(judge(d, nil, 0))
	w.count(judge(d, nil, 2))
	const found = `
# HELP detent_process_findings Processes that have a finding of docs/explain.md now, by its ID and severity.
# TYPE detent_process_findings gauge
detent_process_findings{id="explain.clock-not-on-vdso",severity="warning"} 1
detent_process_findings{id="explain.direct-calls",severity="warning"} 0
detent_process_findings{id="explain.no-vdso",severity="notice"} 1
`
	if err := testutil.CollectAndCompare(w, strings.NewReader(found), "detent_process_findings"); err != nil {
		t.Error(err)
	}
	if problems, err := testutil.CollectAndLint(w); err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
	if err := testutil.CollectAndCompare(w, strings.NewReader(want), "detent_trace_clock_calls_total", "detent_trace_dropped_total", "detent_trace_hook_seconds_total"); err != nil {
		t.Error(err)
	}
}
