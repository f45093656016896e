package watch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/detent-go/detent/trace"
)

func hist(ds ...time.Duration) (h trace.Histogram) {
	for _, d := range ds {
		h.Observe(d)
	}
	return h
}

// example is a difference with something of everything.
func example() *trace.Snapshot {
	took, late := hist(200, 300), hist(2_000_000, 3_000_000)
	return &trace.Snapshot{
		Elapsed: 2 * time.Second, Clocksource: "hpet",
		Hooks: []trace.Hook{
			{Name: "tp_btf/a", Feature: "lateness", Runs: 10, Time: 20 * time.Millisecond},
			{Name: "tp_btf/b", Feature: "timers", Absent: "not in this kernel"},
		},
		Dropped: map[string]uint64{"stacks": 3},
		Processes: []trace.Process{
			{
				PID: 7, Comm: "slow", Exe: "/bin/slow",
				ClockCalls: []trace.ClockCalls{
					{Call: "time", Clock: "realtime", Count: 4, Reason: trace.ReasonUnknown},
					{
						Call: "clock_gettime", Clock: "monotonic", Count: 3_000_000, Reason: trace.ReasonDirect, Took: &took, Sampled: 9,
						Evidence: []trace.Evidence{{Name: "vDSO", Value: "mapped", Source: "/proc/7/maps"}},
						Stacks: []trace.Stack{{Count: 8, Frames: []trace.Frame{
							{Func: "internal/runtime/syscall.Syscall6", Object: "/bin/slow"},
							{Func: "golang.org/x/sys/unix.ClockGettime", Object: "/bin/slow"},
							{Func: "main.hot", Object: "/bin/slow", File: "/src/main.go", Line: 12},
						}}},
					},
				},
				Lateness: []trace.Lateness{{
					Kind: trace.KindEpoll, Slack: hist(500), Interrupt: hist(200), Wake: hist(100), Throttled: hist(0), RunQueue: hist(200), Total: hist(1000),
				}},
				Timers:   []trace.TimerUse{{Kind: trace.KindEpoll, Armed: 4, Expired: 2, Idle: 1, Woken: 2, Asked: 4 * time.Millisecond}},
				Quota:    &trace.Quota{Path: "/sys/fs/cgroup/x", Quota: 1, Period: 2, Throttles: 3, Periods: 4},
				Go:       &trace.GoScheduler{Version: "go1.26", GOMAXPROCS: 2, IdlePs: 1, Latency: hist(5000)},
				GoTimers: &late,
				Profile:  &trace.CPUProfile{User: 5, VDSO: 2, ClockCall: 1, Kernel: 2, Stacks: []trace.Stack{{Count: 3, Frames: []trace.Frame{{Func: "main.spin", Object: "/bin/slow"}}}}},
			},
			{PID: 8, Comm: "gone", Ended: true, Timers: []trace.TimerUse{{Kind: trace.KindFutex, Armed: 1, Expired: 100}}},
		},
		Kernel: []trace.TimerUse{{Kind: trace.KindKernel, Func: "tick", Expired: 10}},
	}
}

func TestTables(t *testing.T) {
	ts := Tables(example())
	calls, late, gos, wakes, profiles := ts[0], ts[1], ts[2], ts[3], ts[4]
	for _, table := range ts {
		for _, r := range table.Rows {
			if len(r.Cells) != len(table.Head) {
				t.Errorf("%s: %d cells under %d columns", table.Name, len(r.Cells), len(table.Head))
			}
			if r.Key == "" || len(r.Detail) == 0 {
				t.Errorf("%s: a row without key or detail: %+v", table.Name, r)
			}
		}
	}
	if got := strings.Join(calls.Rows[0].Cells, "|"); got != "7|slow|monotonic|1.5M|direct-call|main.hot (main.go:12)" {
		t.Error(got)
	}
	if got := strings.Join(calls.Rows[1].Cells, "|"); got != "7|slow|time|2.0|unknown|" {
		t.Error(got)
	}
	if got := strings.Join(late.Rows[0].Cells, "|"); got != "7|slow|epoll|0.5|≤1.0us|≤1.0us|1.0us|50%|20%|10%|0%|20%" {
		t.Error(got)
	}
	if got := strings.Join(gos.Rows[0].Cells, "|"); got != "7|slow|go1.26|2|1|0|≤5.0us|≤5.0us|1.0|≤3.0ms|≤3.0ms" {
		t.Error(got)
	}
	if got := strings.Join(profiles.Rows[0].Cells, "|"); got != "7|slow|10|30%|20%|10%|20%|main.spin" {
		t.Error(got)
	}
	if len(gos.Rows) != 1 || len(profiles.Rows) != 1 {
		t.Errorf("%d Go programs, %d profiles", len(gos.Rows), len(profiles.Rows))
	}
	if got := strings.Join(wakes.Rows[0].Cells, "|"); got != "8|gone (ended)|futex|0.5|50|0|0|0" {
		t.Error(got)
	}
	if got := strings.Join(wakes.Rows[1].Cells, "|"); got != "0|tick|kernel|0|5.0|0|0|" {
		t.Error(got)
	}
	detail := strings.Join(append(calls.Rows[0].Detail, late.Rows[0].Detail...), "\n")
	for _, want := range []string{Why(trace.ReasonDirect), "vDSO: mapped", "8 of 9 samples", "golang.org/x/sys/unix.ClockGettime", "0.50 CPUs", "GOMAXPROCS 2"} {
		if !strings.Contains(detail, want) {
			t.Errorf("%q is not in the details:\n%s", want, detail)
		}
	}
	notes := strings.Join(Notes(example()), "\n")
	if !strings.Contains(notes, "tp_btf/b") || !strings.Contains(notes, "not in this kernel") || !strings.Contains(notes, "stacks: 3") {
		t.Error(notes)
	}
	if s := Status(example()); !strings.Contains(s, "hpet") || !strings.Contains(s, "1.00% of a CPU") {
		t.Error(s)
	}
}

func TestWords(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0", 1: "1ns", 999: "999ns", 1500: "1.5us", 12345: "12us", 3 * time.Millisecond: "3.0ms",
		2400 * time.Millisecond: "2.4s", 90 * time.Second: "1.5min", 3 * time.Hour: "3.0h", -1500: "-1.5us",
	} {
		if got := Duration(d); got != want {
			t.Errorf("%d ns: %q, want %q", d, got, want)
		}
	}
	for n, want := range map[uint64]string{0: "0", 1: "0.5", 100: "50", 3000: "1.5k", 2_000_000: "1.0M", 1999: "1.0k"} {
		if got := Rate(n, 2*time.Second); got != want {
			t.Errorf("%d in 2 s: %q, want %q", n, got, want)
		}
	}
	if Rate(5, 0) != "0" {
		t.Error("a rate in no time")
	}
	seen := make(map[string]trace.Reason)
	for _, r := range []trace.Reason{
		trace.ReasonClock, trace.ReasonClocksource, trace.ReasonOldVDSO, trace.ReasonNoVDSO, trace.ReasonHidden,
		trace.ReasonUnusable, trace.ReasonDirect, trace.ReasonUnknown,
	} {
		if other, ok := seen[Why(r)]; ok {
			t.Errorf("%s and %s have one explanation", r, other)
		}
		seen[Why(r)] = r
	}
}

func TestCaller(t *testing.T) {
	frames := func(names ...string) trace.Stack {
		var s trace.Stack
		for _, n := range names {
			s.Frames = append(s.Frames, trace.Frame{Func: n, Object: "/bin/x", PC: 5})
		}
		return s
	}
	for want, s := range map[string]trace.Stack{
		"main.loop":    frames("runtime.nanotime1", "time.now", "time.Now", "main.loop", "main.main"),
		"timeline.Add": frames("clock_gettime", "timeline.Add"),
		"timer.Start":  frames("syscall", "timer.Start"),
		"runtime.x":    frames("runtime.x", "runtime.y"),
		"":             {},
	} {
		got, ok := Caller(s)
		if got.Func != want || ok != (want != "" && want != "runtime.x") {
			t.Errorf("%+v was called by %q, %v; want %q", s, got.Func, ok, want)
		}
	}
	if got := Place(trace.Frame{PC: 16, Object: "/lib/libx.so"}); got != "0x10 in libx.so" {
		t.Error(got)
	}
}

func TestWriteText(t *testing.T) {
	var all, some bytes.Buffer
	events := []trace.Event{{Kind: trace.EventStep, Step: time.Second}}
	if err := WriteText(&all, example(), events, trace.DefaultFeatures, 100, false); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"hpet", "main.hot", "run queue", "tick", "was set by 1s", "absent: tp_btf/b"} {
		if !strings.Contains(strings.ToLower(all.String()), strings.ToLower(want)) {
			t.Errorf("%q is not in\n%s", want, &all)
		}
	}
	if strings.Contains(all.String(), "\x1b") {
		t.Error("colours without being asked for")
	}
	if n := strings.Count(all.String(), "/bin/slow\n"); n != 1 {
		t.Errorf("a process is explained %d times", n)
	}
	if !strings.Contains(all.String(), "go1.26") || strings.Contains(all.String(), "main.spin") {
		t.Errorf("Go's part is missing, or a profile is there unasked:\n%s", &all)
	}
	if err := WriteText(&some, &trace.Snapshot{}, nil, trace.WatchTimers|trace.WatchGoScheduler, 100, false); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(some.String(), "No timer has been armed") || strings.Contains(some.String(), "system call") {
		t.Errorf("with timers alone, of which there are none:\n%s", &some)
	}
}

// A fake source has nothing first, then the example, and more of it each time.
type fake struct {
	n      int
	events chan trace.Event
	err    error
}

func (f *fake) Snapshot() (*trace.Snapshot, error) {
	if f.err != nil {
		return nil, f.err
	}
	f.n++
	if f.n == 1 {
		return &trace.Snapshot{Elapsed: time.Second}, nil
	}
	s := example()
	s.Elapsed = time.Duration(f.n) * time.Second
	for i := range s.Processes {
		for j := range s.Processes[i].ClockCalls {
			s.Processes[i].ClockCalls[j].Count *= uint64(f.n - 1)
		}
	}
	return s, nil
}

func (f *fake) Events() <-chan trace.Event { return f.events }

func TestStream(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	f := &fake{events: make(chan trace.Event, 1)}
	f.events <- trace.Event{Kind: trace.EventStep, Step: 5}
	var out bytes.Buffer
	lines := 0
	w := writer(func(b []byte) (int, error) {
		if lines++; lines == 4 {
			cancel()
		}
		return out.Write(b)
	})
	if err := Stream(ctx, w, f, time.Millisecond); err != nil {
		t.Fatal(err)
	}
	var intervals, events, totals int
	var last Line
	dec := json.NewDecoder(&out)
	for dec.More() {
		var l Line
		if err := dec.Decode(&l); err != nil {
			t.Fatal(err)
		}
		switch {
		case l.Interval != nil:
			intervals++
			if l.Interval.Elapsed != time.Second || l.Interval.Processes[0].ClockCalls[1].Count != 3_000_000 {
				t.Errorf("an interval of %v: %+v", l.Interval.Elapsed, l.Interval.Processes[0].ClockCalls)
			}
		case l.Event != nil:
			events++
		case l.Total != nil:
			totals++
		}
		last = l
	}
	if intervals == 0 || events != 1 || totals != 1 || last.Total == nil {
		t.Errorf("%d intervals, %d events, %d totals", intervals, events, totals)
	}
	failed := errors.New("failed")
	if err := Stream(t.Context(), &out, &fake{err: failed}, time.Second); !errors.Is(err, failed) {
		t.Errorf("a source that fails: %v", err)
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }

func TestCollect(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	f := &fake{events: make(chan trace.Event)}
	go func() {
		for range maxEvents + 5 {
			f.events <- trace.Event{Kind: trace.EventStep}
		}
		cancel()
	}()
	s, events, err := Collect(ctx, f)
	if err != nil || s == nil || len(events) != maxEvents {
		t.Errorf("%v, %d events, %v", s, len(events), err)
	}
}
