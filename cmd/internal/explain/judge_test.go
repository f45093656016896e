package explain

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/detent-go/detent/probe"
	"github.com/detent-go/detent/trace"
)

// n is a histogram of so many equal values.
func n(count int, d time.Duration) (h trace.Histogram) {
	for range count {
		h.Observe(d)
	}
	return h
}

func ptr(h trace.Histogram) *trace.Histogram { return &h }

// late is a lateness of equal wake-ups with these parts.
func late(kind trace.TimerKind, count int, slack, interrupt, throttled, queue time.Duration) trace.Lateness {
	const wake = 3 * time.Microsecond
	return trace.Lateness{
		Kind: kind, Slack: n(count, slack), Interrupt: n(count, interrupt), Wake: n(count, wake),
		Throttled: n(count, throttled), RunQueue: n(count, queue), Total: n(count, slack+interrupt+wake+throttled+queue),
	}
}

func callsOf(reason trace.Reason, count uint64) []trace.ClockCalls {
	return []trace.ClockCalls{{
		Call: "clock_gettime", Clock: "monotonic", ID: 1, Count: count, Reason: reason,
		Evidence: []trace.Evidence{{Name: "vDSO", Value: "mapped", Source: "/proc/7/maps"}},
		Stacks:   []trace.Stack{{Count: 3, Frames: []trace.Frame{{Func: "runtime.nanotime1", Object: "/x"}, {Func: "main.loop", Object: "/x"}}}},
	}}
}

const (
	us = time.Microsecond
	ms = time.Millisecond
)

// on is a process that ran that long in ten seconds and waited so for others.
func on(cpu time.Duration, p trace.Process) trace.Process {
	p.PID, p.CPU = 7, cpu
	if p.Wait == nil {
		p.Wait = &trace.Wait{Throttled: n(1000, 0), RunQueue: n(1000, 8*us)}
	}
	return p
}

func TestJudge(t *testing.T) {
	quota := &trace.Quota{Path: "/sys/fs/cgroup/x", File: "/sys/fs/cgroup/x/cpu.max", Quota: 20 * ms, Period: 100 * ms, Periods: 100, Throttles: 90, Throttled: 8 * time.Second}
	idleGo := &trace.GoScheduler{Version: "go1.26", GOMAXPROCS: 2, IdlePs: 2, Latency: n(1000, 5*us)}
	fullGo := &trace.GoScheduler{Version: "go1.26", GOMAXPROCS: 1, Latency: n(1000, 30*ms)}
	for name, c := range map[string]struct {
		process trace.Process
		machine []string
		want    []string // ID and severity, the root cause first
	}{
		"idle":    {on(0, trace.Process{}), nil, nil},
		"healthy": {on(100*ms, trace.Process{Lateness: []trace.Lateness{late(trace.KindEpoll, 500, 50*us, 8*us, 0, 10*us)}, GoTimers: ptr(n(500, 90*us)), Go: idleGo}), nil, nil},
		"healthy, package time's floor": {
			on(100*ms, trace.Process{Lateness: []trace.Lateness{late(trace.KindEpoll, 500, 50*us, 8*us, 0, 10*us)}, GoTimers: ptr(n(500, 600*us)), Go: idleGo}),
			nil, []string{"explain.package-time info"},
		},
		"healthy, with a quota that it keeps to": {
			on(time.Second, trace.Process{Quota: &trace.Quota{Quota: 20 * ms, Period: 100 * ms, Periods: 100}}), nil, nil,
		},
		"healthy, and busy":             {on(9*time.Second, trace.Process{GoTimers: ptr(n(500, 90*us)), Go: idleGo}), nil, nil},
		"healthy, in C, and busy":       {on(9*time.Second, trace.Process{Lateness: []trace.Lateness{late(trace.KindNanosleep, 500, 50*us, 8*us, 0, 10*us)}}), nil, nil},
		"a few direct calls":            {on(100*ms, trace.Process{ClockCalls: callsOf(trace.ReasonDirect, 10_000)}), nil, nil},
		"some direct calls":             {on(9*time.Second, trace.Process{ClockCalls: callsOf(trace.ReasonDirect, 100_000)}), nil, []string{"explain.direct-calls notice"}},
		"some, and it does little else": {on(100*ms, trace.Process{ClockCalls: callsOf(trace.ReasonDirect, 100_000)}), nil, []string{"explain.direct-calls warning"}},
		"many direct calls":             {on(3*time.Second, trace.Process{ClockCalls: callsOf(trace.ReasonDirect, 10_000_000)}), nil, []string{"explain.direct-calls critical"}},
		"a hidden vDSO":                 {on(3*time.Second, trace.Process{ClockCalls: callsOf(trace.ReasonHidden, 10_000_000)}), nil, []string{"explain.vdso-hidden critical"}},
		"a hidden vDSO, hardly used":    {on(3*time.Second, trace.Process{ClockCalls: callsOf(trace.ReasonHidden, 100)}), nil, []string{"explain.vdso-hidden notice"}},
		"a hidden vDSO, once":           {on(3*time.Second, trace.Process{ClockCalls: callsOf(trace.ReasonHidden, 3)}), nil, nil},
		"no vDSO":                       {on(3*time.Second, trace.Process{ClockCalls: callsOf(trace.ReasonNoVDSO, 10_000_000)}), nil, []string{"explain.no-vdso critical"}},
		"an unusable vDSO":              {on(3*time.Second, trace.Process{ClockCalls: callsOf(trace.ReasonUnusable, 10_000_000)}), nil, []string{"explain.vdso-unusable critical"}},
		"a clock of an old vDSO":        {on(3*time.Second, trace.Process{ClockCalls: callsOf(trace.ReasonOldVDSO, 10_000_000)}), nil, []string{"explain.old-vdso critical"}},
		"a thread's CPU time":           {on(3*time.Second, trace.Process{ClockCalls: callsOf(trace.ReasonClock, 10_000_000)}), nil, []string{"explain.clock-not-on-vdso warning"}},
		"unexplained":                   {on(3*time.Second, trace.Process{ClockCalls: callsOf(trace.ReasonUnknown, 10_000_000)}), nil, []string{"explain.unexplained-calls warning"}},
		"hpet": {
			on(3*time.Second, trace.Process{ClockCalls: callsOf(trace.ReasonClocksource, 10_000_000)}),
			[]string{"clocksource.no-vdso", "cpu.steal"}, []string{"explain.clocksource critical", "clocksource.no-vdso critical"},
		},
		"throttled": {
			on(2*time.Second, trace.Process{
				Quota: quota, Go: fullGo, GoTimers: ptr(n(100, 80*ms)),
				Wait:     &trace.Wait{Throttled: n(100, 80*ms), RunQueue: n(100, 50*us)},
				Lateness: []trace.Lateness{late(trace.KindEpoll, 100, 50*us, 8*us, 80*ms, 10*us)},
			}), nil, []string{"explain.throttled critical"},
		},
		"throttled, by a cgroup that is not to be seen": {
			on(2*time.Second, trace.Process{Wait: &trace.Wait{Throttled: n(100, 80*ms), RunQueue: n(100, 50*us)}}), nil, []string{"explain.throttled critical"},
		},
		"throttled for a moment, by one that is not to be seen": {
			on(2*time.Second, trace.Process{Wait: &trace.Wait{Throttled: n(1, 80*ms), RunQueue: n(100, 50*us)}}), nil, []string{"explain.throttled notice"},
		},
		"throttled now and then": {
			on(time.Second, trace.Process{Quota: &trace.Quota{Path: "/g", Quota: 20 * ms, Period: 100 * ms, Periods: 100, Throttles: 3}}),
			nil, []string{"explain.throttled notice"},
		},
		"saturated": {
			on(9500*ms, trace.Process{Go: fullGo, GoTimers: ptr(n(500, 12*ms))}), nil, []string{"explain.go-saturated warning"},
		},
		"saturated, stripped": {
			on(9500*ms, trace.Process{Go: &trace.GoScheduler{Absent: "no symbols"}, GoTimers: ptr(n(500, 12*ms))}), nil, []string{"explain.go-saturated warning"},
		},
		"saturated, badly": {
			on(9500*ms, trace.Process{Go: fullGo, GoTimers: ptr(n(500, 120*ms))}), nil, []string{"explain.go-saturated critical"},
		},
		"saturated, on a busy machine": {
			on(4*time.Second, trace.Process{
				Go: fullGo, GoTimers: ptr(n(500, 20*ms)),
				Wait: &trace.Wait{Throttled: n(600, 0), RunQueue: n(600, 10*ms)},
			}), []string{"cpu.pressure"},
			[]string{"cpu.pressure critical", "explain.cpu-contention warning", "explain.go-saturated warning"},
		},
		"late Go timers in an idle program": {on(100*ms, trace.Process{Go: idleGo, GoTimers: ptr(n(500, 12*ms))}), nil, nil},
		"a busy machine": {
			on(time.Second, trace.Process{
				Wait:     &trace.Wait{Throttled: n(500, 0), RunQueue: n(500, 10*ms)},
				Lateness: []trace.Lateness{late(trace.KindEpoll, 400, 50*us, 8*us, 0, 12*ms)},
			}), nil, []string{"explain.cpu-contention warning"},
		},
		"a stolen CPU": {
			on(time.Second, trace.Process{Lateness: []trace.Lateness{late(trace.KindTimerfd, 400, 0, 3*ms, 0, 10*us)}}),
			[]string{"cpu.steal"}, []string{"cpu.steal critical", "explain.late-interrupts warning"},
		},
		"much slack": {
			on(time.Second, trace.Process{Lateness: []trace.Lateness{late(trace.KindNanosleep, 400, 10*ms, 8*us, 0, 10*us)}}),
			nil, []string{"explain.timer-slack warning"},
		},
		"the slack of long waits": {
			on(time.Second, trace.Process{Lateness: []trace.Lateness{late(trace.KindEpoll, 400, 10*ms, 8*us, 0, 10*us)}}), nil, nil,
		},
	} {
		f := Facts{Process: c.process, Elapsed: 10 * time.Second}
		for _, id := range c.machine {
			f.Machine = append(f.Machine, probe.Finding{ID: id, Severity: probe.Critical, Confidence: probe.Certain})
		}
		var got []string
		for _, x := range Judge(f) {
			got = append(got, x.ID+" "+x.Severity.String())
			if strings.HasPrefix(x.ID, "explain.") && (x.Title == "" || len(x.Evidence) == 0 || len(x.Remedy) == 0) {
				t.Errorf("%s: incomplete: %+v", name, x)
			}
			for _, e := range x.Evidence {
				if e.Name == "" || e.Value == "" || e.Source == "" {
					t.Errorf("%s: incomplete evidence %+v", name, e)
				}
			}
			if strings.Contains(strings.Join(x.Remedy, " "), "PID ") {
				t.Errorf("%s: a remedy for no process: %q", name, x.Remedy)
			}
		}
		// Of equal severity and confidence any may be first.
		slices.Sort(got)
		slices.Sort(c.want)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestOrder: worst first, and a report's verdict is the root cause's.
func TestOrder(t *testing.T) {
	f := Facts{Elapsed: 10 * time.Second, Process: on(3*time.Second, trace.Process{
		ClockCalls: append(callsOf(trace.ReasonClock, 1_000_000), callsOf(trace.ReasonHidden, 10_000_000)...),
	})}
	found := Judge(f)
	if len(found) != 2 || found[0].ID != "explain.vdso-hidden" || Worst(found) != probe.Critical {
		t.Errorf("%+v", found)
	}
	r := &Report{Found: found, Worst: Worst(found)}
	if v := r.verdict(); !strings.HasPrefix(v, "Its clock readings") || !strings.Contains(v, "hidden") {
		t.Error(v)
	}
	if v := (&Report{}).verdict(); !strings.HasPrefix(v, "Nothing") {
		t.Error(v)
	}
}

func TestSetQuota(t *testing.T) {
	q := &trace.Quota{File: "/g/cpu.max", Quota: 20 * ms, Period: 100 * ms}
	if got := setQuota(q, 1.5); got != "echo '150000 100000' > /g/cpu.max" {
		t.Error(got)
	}
	q.File = "/g/cpu.cfs_quota_us"
	if got := setQuota(q, 0.25); got != "echo 25000 > /g/cpu.cfs_quota_us" {
		t.Error(got)
	}
}

// TestDocumented: docs/explain.md has each finding of the source, and no other.
func TestDocumented(t *testing.T) {
	made := make(map[string]bool)
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`"(explain\.[a-z-]+)"`).FindAllStringSubmatch(string(b), -1) {
			made[m[1]] = true
		}
	}
	text, err := os.ReadFile("../../../docs/explain.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^### (\S+)$`).FindAllStringSubmatch(string(text), -1) {
		if !made[m[1]] {
			t.Errorf("docs/explain.md explains %s, which nothing makes", m[1])
		}
		delete(made, m[1])
	}
	for id := range made {
		t.Errorf("docs/explain.md does not explain %s", id)
	}
}
