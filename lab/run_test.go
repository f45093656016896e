package lab

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// tiny runs everything in seconds, to see that it works.
func tiny() Plan {
	p := Short()
	p.Rounds, p.Window, p.Procs, p.Pending, p.Waiting, p.Garbage, p.Sleeps = 1, time.Millisecond, []int{2}, []int{1000, 2000}, []int{40, 400}, 100, 3
	return p
}

// TestRun: every experiment of the lab finds something or says why not, and every
// claim gets a verdict for a reason.
func TestRun(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	var steps []string
	r, err := Run(context.Background(), Options{Plan: tiny(), Progress: func(p Progress) { steps = append(steps, p.Experiment) }})
	if err != nil {
		t.Fatal(err)
	}
	if len(steps) != len(Experiments())+1 || steps[len(steps)-1] != "" {
		t.Errorf("progress %q", steps)
	}
	for i, e := range Experiments() {
		x := r.Results[i]
		if x.Name != e.Name || x.About == "" || len(x.Figures) == 0 && x.Failed == "" {
			t.Errorf("%s: %+v", e.Name, x)
		}
		here := 0
		for _, f := range x.Figures {
			if f.Here != nil {
				here++
			}
			if f.What == "" || f.Who == "" || f.Case == "" {
				t.Errorf("%s: nameless figure %+v", e.Name, f)
			}
		}
		if here == 0 && x.Failed == "" {
			t.Errorf("%s measured nothing", e.Name)
		}
		for _, p := range x.Plots {
			for _, s := range p.Series {
				if want := len(p.Labels); p.Kind == Bars && len(s.Values) != want || p.Kind == Heat && len(s.Values) != len(p.Columns) || p.Kind == Tails && len(s.Points) == 0 {
					t.Errorf("%s: plot %s, series %s: %d values for %d labels", e.Name, p.ID, s.Name, len(s.Values), want)
				}
			}
		}
		t.Logf("%s: %d figures in %v; skipped %q; failed %q", x.Name, here, x.Took.Round(time.Millisecond), x.Skipped, x.Failed)
	}
	if len(r.Claims) != 24 {
		t.Errorf("%d claims", len(r.Claims))
	}
	for _, c := range r.Claims {
		if c.Says == "" || c.Because == "" || !slices.Contains([]Verdict{Confirmed, Refuted, NotTestable, NotRun}, c.Verdict) {
			t.Errorf("%+v", c)
		}
		t.Logf("%s %s: %s (%s)", c.ID, c.Verdict, c.Says, c.Because)
	}
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var back Report
	if err := json.Unmarshal(b, &back); err != nil || len(back.Results) != len(r.Results) {
		t.Errorf("JSON: %v", err)
	}
}

// TestStopped: what was measured before the end is kept.
func TestStopped(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	r, err := Run(ctx, Options{Plan: tiny(), Names: []string{"functions", "sleep", "lateness"}, Progress: func(p Progress) {
		if p.Experiment == "sleep" {
			cancel(errors.New("enough"))
		}
	}})
	if err != nil || r.Stopped != "enough" || len(r.Results) != 2 || len(r.Results[0].Figures) == 0 {
		t.Errorf("%v, %+v", err, r)
	}
}

func TestUnknown(t *testing.T) {
	if _, err := Run(context.Background(), Options{Names: []string{"sundial"}}); err == nil || !strings.Contains(err.Error(), "sundial") {
		t.Errorf("error %v", err)
	}
}

// TestPublished: every file of data is read, and its figures are found.
func TestPublished(t *testing.T) {
	for _, name := range []string{"clock_figures", "go114_netpoll_timers", "go114_time_12procs", "sleep_precision", "syscalls_113_114", "wheel_vs_std"} {
		if len(rows(name)) == 0 {
			t.Errorf("%s is empty", name)
		}
	}
	if v, by := publishedTime("time", "Reset", "netpoll114", 4); v == nil || *v != 33000 || by != "Go 1.14" {
		t.Errorf("Reset at 4: %v, %s", v, by)
	}
	if v := publishedSleep("nanosleep", "p50_ns", 50*time.Microsecond); v == nil || *v != 111000 {
		t.Errorf("nanosleep: %v", v)
	}
	if v := publishedSleep("time.Sleep", "p50_ns", 1); v == nil || *v != 476 {
		t.Errorf("time.Sleep of 1 ns is host A's: %v", v)
	}
	if v := published("clock_figures", "value", map[string]string{"id": "C99"}); v != nil {
		t.Errorf("found %v", *v)
	}
}

// TestNothing: claims about experiments that were not made are not decided.
func TestNothing(t *testing.T) {
	for _, c := range judge(&Report{}) {
		if (c.Verdict == Confirmed || c.Verdict == Refuted) && c.ID != "K11" {
			t.Errorf("%s is %s by nothing", c.ID, c.Verdict)
		}
	}
}

// TestModel: the model is the same in every run, and a longer tick makes no shorter
// wait.
func TestModel(t *testing.T) {
	if a, b := (tickModel{hz: 100}).simulate(1000), (tickModel{hz: 100}).simulate(1000); !slices.Equal(a, b) {
		t.Error("two runs differ")
	}
	slow, fast := tickModel{hz: 100}.simulate(10_000), tickModel{hz: 1000}.simulate(10_000)
	if quantile(slow, 0.99) < quantile(fast, 0.99) {
		t.Error("a tick of 10 ms makes shorter waits than one of 1 ms")
	}
}

// TestWithin: what never ends is left alone once the run is stopped, and what ends in
// time is waited for.
func TestWithin(t *testing.T) {
	if v, err := within(context.Background(), func() int { return 3 }); v != 3 || err != nil {
		t.Errorf("%d, %v", v, err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("enough"))
	never := make(chan int)
	defer close(never)
	if _, err := within(ctx, func() int { return <-never }); err == nil || err.Error() != "enough" {
		t.Errorf("error %v", err)
	}
	if v, err := within(ctx, func() int { time.Sleep(time.Millisecond); return 3 }); v != 3 || err != nil {
		t.Errorf("what ends within the grace: %d, %v", v, err)
	}
}

// TestVerdicts: the figures that decide are those of the claim, noise decides nothing,
// and neither does half of the figures.
func TestVerdicts(t *testing.T) {
	figure := func(what, who, in string, v float64) Figure {
		return Figure{What: what, Who: who, Case: in, Here: is(v)}
	}
	result := func(name string, list ...Figure) *Result { return &Result{Name: name, Figures: list} }
	pool := func(least, mid, most float64) *Result {
		const of, what, tail = "pool / pool1", "p99 of the pool by that of one lock, ", "lateness p99, median of rounds"
		return result("pool", figure(what+"least", of, poolCase, least), figure(what+"median", of, poolCase, mid), figure(what+"most", of, poolCase, most),
			figure(tail, "pool", poolCase, 1), figure(tail, "pool1", poolCase, 1))
	}
	switches := func(old, young float64) *Result {
		return result("syscalls", figure(whileStarting, driverAlone, "", 300), figure("voluntary switches", "buckets64", "", 300+old),
			figure("sleeps, by the engine", "netpoll114", "", young), figure("voluntary switches", "std", "", 400))
	}
	nodes := func(bound, apart float64) *Result {
		return result("offsets", figure("frequency", "cycle counter", "by CLOCK_MONOTONIC_RAW", 2e9),
			figure("offset bound", "sockets", "8 pairs", bound), figure("pairs certainly apart", "sockets", "8 pairs", apart))
	}
	pending := func(n int, wheel, other float64) *Result {
		return result("wheel", figure("start and stop", "wheel", pendingCase(1), 100), figure("start and stop", "wheel", pendingCase(n), wheel),
			figure("start and stop", "std", pendingCase(1), 100), figure("start and stop", "std", pendingCase(n), other))
	}
	for _, c := range []struct {
		claim string
		x     *Result
		want  Verdict
	}{
		{"C10", pool(0.1, 0.2, 0.4), Confirmed}, {"C10", pool(0.6, 0.9, 2), Refuted}, {"C10", pool(0.1, 0.9, 2), NotTestable},
		{"C10", result("pool"), NotRun},
		{"K1", switches(1000, 500), Confirmed}, {"K1", switches(500, 1000), Refuted}, {"K1", switches(1000, 1100), NotTestable},
		{"K1", result("syscalls", figure("voluntary switches", "buckets64", "", 500), figure("sleeps, by the engine", "netpoll114", "", 100)), NotRun},
		{"C7", nodes(20, 0), Refuted}, {"C7", nodes(200, 0), NotTestable}, {"C7", nodes(200, 3), Confirmed},
		{"C2", nodes(20, 0), Refuted}, {"C2", nodes(200, 0), NotTestable}, {"C6", nodes(20, 0), NotTestable},
		{"K3", pending(10_000_000, 400, 100), Confirmed}, {"K3", pending(10_000_000, 100, 400), Refuted},
		{"K3", pending(10_000_000, 110, 100), NotTestable}, {"K3", pending(1_000_000, 400, 100), NotRun},
		{"K5", result("sleep", figure("p50", "nanosleep", "50µs", 1e5)), NotRun},
		{"C12", result("monitor", figure("sleeps a second", "monitor", "idle program", 50)), NotRun},
	} {
		for _, got := range judge(&Report{Results: []*Result{c.x}}) {
			if got.ID == c.claim && got.Verdict != c.want {
				t.Errorf("%s is %s (%s), want %s", got.ID, got.Verdict, got.Because, c.want)
			}
		}
	}
}

// TestManyProcs: a GOMAXPROCS for which there are too few CPUs is published, not
// measured, and says so.
func TestManyProcs(t *testing.T) {
	r := &Result{}
	r.unmeasured(manyProcs)
	published := 0
	for _, f := range r.Figures {
		if f.Here != nil {
			t.Errorf("%+v is measured", f)
		}
		if f.Published != nil {
			published++
		}
	}
	if published != 2*len(benchmarks) || len(r.Skipped) != 1 {
		t.Errorf("%d figures published, skipped %q", published, r.Skipped)
	}
}
