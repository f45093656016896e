package lab

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/detent-go/detent/probe"
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
				if want := len(p.Labels); p.Kind == Bars && len(s.Values) != want || p.Kind == Heat && len(s.Values) != len(p.Columns) || (p.Kind == Tails || p.Kind == Histogram) && len(s.Points) == 0 {
					t.Errorf("%s: plot %s, series %s: %d values for %d labels", e.Name, p.ID, s.Name, len(s.Values), want)
				}
			}
		}
		t.Logf("%s: %d figures in %v; skipped %q; failed %q", x.Name, here, x.Took.Round(time.Millisecond), x.Skipped, x.Failed)
	}
	everythingPublished(t, r)
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

// everythingPublished: each figure of the article on clocks stands in the report, but
// those that the report has in other words; where there is a cycle counter.
func everythingPublished(t *testing.T, r *Report) {
	t.Helper()
	if r.result("rdtsc").Failed != "" {
		return // no counter that can be read
	}
	elsewhere := map[string]bool{
		"C1 backward calls (high)": true, "C5 +- (high)": true, // the upper ends of ranges
		"C2 stddev": true, "C7 stddev": true, // bounds have none
		"C8 threshold": true, // what is counted against it stands there
		"C12 period":   true, // as so many a second
	}
	for _, row := range rows("clock_figures") {
		want, found := number(row["value"]), elsewhere[row["id"]+" "+row["statistic"]] || row["case"] == "node1 -> node0" // the other way round
		for _, x := range r.Results {
			for _, f := range x.Figures {
				found = found || f.Published != nil && *f.Published == *want
			}
		}
		if !found {
			t.Errorf("%s, %s, %s: %s is nowhere", row["id"], row["case"], row["statistic"], row["value"])
		}
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
	for _, m := range tickModels {
		waits := m.simulate(10_000)
		if waits[0] < 0 {
			t.Errorf("%s: a wait of %v", m.name(), waits[0])
		}
		// A slice is over after 10 ms at the least, a sleep is due after 11 ms at the most,
		// and no slice is longer than two looks and their delays.
		if most := 2*(goMonitor+monitorLate) + 3*(kernelSlice+10*time.Millisecond); waits[len(waits)-1] > most {
			t.Errorf("%s: a wait of %v, more than %v", m.name(), waits[len(waits)-1], most)
		}
	}
}

// TestShares: what is in the classes is all there was, and the last point ends them.
func TestShares(t *testing.T) {
	s := shares{}
	for _, d := range []time.Duration{0, 1, 100, 100, 1 << 20} {
		s.add(d, 1)
	}
	points := s.points()
	sum := 0.0
	for i, p := range points {
		sum += p[1]
		if i > 0 && p[0] <= points[i-1][0] {
			t.Errorf("class %d begins at %v", i, p[0])
		}
	}
	if math.Abs(sum-100) > 1e-9 || points[0] != [2]float64{1, 40} || points[len(points)-1][1] != 0 || len(points) != 20*octave+2 {
		t.Errorf("%v of %v", sum, points)
	}
	if (shares{}).points() != nil {
		t.Error("points of nothing")
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
	flags := func(constant, nonstop, jumps float64) *Result {
		return result("offsets", figure("flag", "constant_tsc", flagCase, constant), figure("flag", "nonstop_tsc", flagCase, nonstop), figure("jumps", "cycle counter", "9 samples", jumps))
	}
	preempted := func(hz, full, measured float64) *Result {
		list := []Figure{figure("HZ", "this kernel", tickCase, hz), figure("NO_HZ_FULL", "this kernel", tickCase, full), figure(jitter, "measured", preemptionCase, measured)}
		for _, m := range tickModels {
			list = append(list, figure(jitter, m.name(), preemptionCase, 5e6))
		}
		return result("preemption", list...)
	}
	slept := func(now, old float64) *Result {
		return result("sleep", figure("p50", "time.Sleep", "50µs", now), figure("p50", "buckets64", "50µs", old), figure("p50", "heap1", "50µs", old))
	}
	both := func(short, long float64) *Result {
		return result("sleep", figure("p50", "nanosleep", "50µs", 1e5), figure("p50", "time.Sleep", "50µs", short), figure("p50", "nanosleep", "1ms", 1e6), figure("p50", "time.Sleep", "1ms", long),
			figure("p50", "nanosleep", "50ms", 5e7), figure("p50", "time.Sleep", "50ms", 5e7))
	}
	wobbling := func(smt, core float64) *Result {
		return result("offsets", figure("wobble, mean", string(probe.SameCore), wobbleCase, smt), figure("wobble, mean", string(probe.SameNode), wobbleCase, core))
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
		{"K10", flags(1, 1, 0), NotTestable}, {"K10", flags(0, 1, 3), Confirmed}, {"K10", flags(1, 0, 0), Refuted}, {"K10", result("offsets"), NotTestable},
		{"C5", preempted(250, 0, 6e6), NotTestable}, {"C5", preempted(100, 0, 6e6), NotTestable}, {"C5", preempted(1000, 0, 6e6), Refuted},
		{"C5", preempted(1000, 1, 40e6), NotTestable}, {"C5", preempted(1000, 1, 6e6), Refuted},
		{"K4", slept(1e6, 1e5), Confirmed}, {"K4", slept(1e5, 1e5), Refuted}, {"K4", slept(1.5e5, 1e5), NotTestable},
		{"K5", both(1e6, 1e6), Confirmed}, {"K5", both(1e5, 1e6), Refuted}, {"K5", both(1e6, 2e6), Refuted},
		{"C6", wobbling(80, 12), Confirmed}, {"C6", wobbling(12, 12), Refuted}, {"C6", wobbling(13, 12), NotTestable},
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
