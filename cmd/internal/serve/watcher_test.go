package serve

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

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

// TestCulprits: a process is named for calls that it need not make, if they are many.
func TestCulprits(t *testing.T) {
	list := culprits(snapshot())
	if len(list) != 1 {
		t.Fatalf("%+v", list)
	}
	f := list[0]
	if f.ID != "process.clock-system-calls" || f.Severity != probe.Warning || len(f.Remedy) == 0 ||
		!strings.Contains(f.Title, "sick (PID 2) makes 100000 system calls a second") {
		t.Errorf("%+v", f)
	}
	from := f.Evidence[len(f.Evidence)-1]
	if from.Value != "main.loop (main.go:7)" {
		t.Errorf("evidence %+v", from)
	}
	var many trace.Snapshot
	many.Elapsed = time.Second
	for pid := range 100 {
		many.Processes = append(many.Processes, trace.Process{PID: pid, ClockCalls: []trace.ClockCalls{{Count: 1 << 20, Reason: trace.ReasonNoVDSO}}})
	}
	if n := len(culprits(&many)); n != maxCulprits {
		t.Errorf("%d findings of 100 processes", n)
	}
	if n := len(processesOf(&many)); n != maxShown {
		t.Errorf("%d processes shown of 100", n)
	}
}

func TestProcessesOf(t *testing.T) {
	list := processesOf(snapshot())
	if len(list) != 4 || list[0].PID != 3 || list[1].PID != 2 || list[1].ClockCalls != 100_000 || list[1].Late < 3*time.Millisecond {
		t.Errorf("%+v", list)
	}
	for _, p := range list {
		if p.PID == 5 && (p.Timers != 10 || p.Wakeups != 3) {
			t.Errorf("%+v", p)
		}
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
	if err := testutil.CollectAndCompare(w, strings.NewReader(want), "detent_trace_clock_calls_total", "detent_trace_dropped_total", "detent_trace_hook_seconds_total"); err != nil {
		t.Error(err)
	}
}
