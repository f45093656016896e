package probe

import (
	"context"
	"errors"
	"os"
	"runtime"
	"slices"
	"testing"
	"testing/fstest"
	"time"
)

// fakeCheck measures for as long as its context lets it.
func fakeCheck(name string, budget time.Duration, allowed *time.Duration) Check {
	return Check{
		Name:   name,
		Budget: func(*Env) time.Duration { return budget },
		Run: func(ctx context.Context, _ *Env) Result {
			deadline, _ := ctx.Deadline()
			*allowed = time.Until(deadline)
			<-ctx.Done()
			return Result{Err: ended(ctx), Data: &SleepData{}}
		},
	}
}

// However long a check would take: the run ends, those after it have had their time,
// and each says what it did not get to.
func TestRunHasAnEnd(t *testing.T) {
	const budget = 40 * time.Millisecond
	var allowed [3]time.Duration
	files := 0
	checks := []Check{
		fakeCheck("a", budget, &allowed[0]),
		fakeCheck("b", budget, &allowed[1]),
		{Name: "files", Run: func(context.Context, *Env) Result { files++; return Result{} }},
		fakeCheck("c", budget, &allowed[2]),
	}
	e := &Env{Root: fstest.MapFS{}}
	r, err := run(context.Background(), e, checks, 4*budget, nil)
	if err != nil || len(r.Results) != 4 || files != 1 {
		t.Fatalf("%+v, %v; %d", r, err, files)
	}
	if allowed[0] > 2*budget {
		t.Errorf("the first check was given %v, which is not only its own", allowed[0])
	}
	for i, result := range r.Results {
		if result.Check == "files" {
			continue
		}
		if !errors.Is(result.Err, ErrNoTime) || result.Status() == Measured || result.Err.Error() != ErrNoTime.Error() {
			t.Errorf("%d: %v, %s", i, result.Err, result.Status())
		}
	}
	// Without any time those that measure are not made, the others are.
	files = 0
	ran := allowed
	if r, err = run(context.Background(), e, checks, -1, nil); err != nil || files != 1 || allowed != ran {
		t.Errorf("%+v, %v; %d", r, err, files)
	}
	for _, i := range []int{0, 1, 3} {
		if r.Results[i].Err != ErrNoTime || r.Results[i].Status() != Unknown {
			t.Errorf("%d: %v", i, r.Results[i].Err)
		}
	}
}

func TestAllot(t *testing.T) {
	budgets := func(list ...time.Duration) (checks []Check) {
		for _, b := range list {
			c := Check{}
			if b > 0 {
				c.Budget = func(*Env) time.Duration { return b }
			}
			checks = append(checks, c)
		}
		return checks
	}
	for _, c := range []struct {
		checks []Check
		rest   time.Duration
		want   time.Duration
	}{
		{budgets(2, 3, 5), 20, 12}, // all but the others' 8
		{budgets(2, 3, 5), 10, 2},
		{budgets(2, 3, 5), 5, 1}, // its part
		{budgets(2, 3, 5), 0, 0},
		{budgets(2, 3, 5), -7, 0},
		{budgets(5), 3, 3},
		{budgets(0, 5), 3, 3},
	} {
		if got := allot(c.checks, &Env{}, c.rest); got != c.want {
			t.Errorf("%d checks, %d left: %d, want %d", len(c.checks), c.rest, got, c.want)
		}
	}
}

// All budgets together leave something of what the effort promises.
func TestBudgetsFit(t *testing.T) {
	for effort, promised := range map[Effort]time.Duration{Quick: 3 * time.Second, Normal: 15 * time.Second, Thorough: 15 * time.Minute} {
		e := &Env{Own: true, Effort: effort}
		if sum := left(Checks(), e); sum > effort.limit() || effort.limit() >= promised {
			t.Errorf("effort %d: %v of %v of %v", effort, sum, effort.limit(), promised)
		}
	}
}

// An interrupted run tells of causes as a whole one does.
func TestRunInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("because")
	checks := []Check{
		{Name: "x", Run: func(context.Context, *Env) Result {
			return Result{Findings: []Finding{{ID: "clocksource.no-vdso", Severity: Critical, Confidence: Certain}}}
		}},
		{Name: "y", Run: func(ctx context.Context, _ *Env) Result {
			cancel(why)
			return Result{Err: ended(ctx), Data: &SleepData{}, Findings: []Finding{{ID: "clocks.vdso-falls-back"}}}
		}},
		{Name: "z", Run: func(context.Context, *Env) Result { t.Error("after the end"); return Result{} }},
	}
	r, err := run(ctx, &Env{Root: fstest.MapFS{}}, checks, time.Hour, nil)
	if !errors.Is(err, context.Canceled) || len(r.Results) != 2 {
		t.Fatalf("%+v, %v", r, err)
	}
	if err := r.Results[1].Err; !errors.Is(err, context.Canceled) || !errors.Is(err, why) || err.Error() != why.Error() {
		t.Errorf("%v", err)
	}
	if f := r.Results[1].Findings[0]; f.Because != "clocksource.no-vdso" {
		t.Errorf("%+v", f)
	}
}

// Each check that measures ends when it is told to, with what it has got.
func TestChecksEndInTime(t *testing.T) {
	if runtime.GOARCH == "wasm" {
		t.Skip("the scheduler has one thread, and cannot preempt")
	}
	for _, c := range Checks() {
		if c.Budget == nil {
			continue
		}
		e := &Env{Root: os.DirFS("/"), Own: true, Effort: Thorough}
		if err := e.measurable(); err != nil {
			t.Skip(err)
		}
		began := time.Now()
		r := c.runWithin(context.Background(), e, 30*time.Millisecond)
		t.Logf("%s took %v: %v", c.Name, time.Since(began), r.Err)
		if errors.Is(r.Err, errors.ErrUnsupported) {
			continue
		}
		if !errors.Is(r.Err, ErrNoTime) || r.Data == nil {
			t.Errorf("%s: %v, %+v", c.Name, r.Err, r.Data)
		}
		// What it has not measured it says nothing of.
		if d, ok := r.Data.(*ClocksData); ok && slices.ContainsFunc(d.Clocks, func(c ClockCost) bool { return c.Cost == Cost{} }) {
			t.Errorf("clocks that cost nothing: %+v", d.Clocks)
		}
	}
}

// Where /proc or /sys is not mounted, that is said, and nothing is concluded from
// what is not there.
func TestNotMounted(t *testing.T) {
	for _, c := range []struct {
		root fstest.MapFS
		want int
	}{
		{fstest.MapFS{"proc/self/stat": {}, "sys/devices/x": {}}, 0},
		{fstest.MapFS{"proc/self/stat": {}}, 1},
		{fstest.MapFS{}, 2},
	} {
		e := &Env{Root: c.root, Own: true}
		if e.linux() != nil {
			t.Skip(e.linux())
		}
		n := 0
		if err := e.mounted(); err != nil {
			n = len(err.(interface{ Unwrap() []error }).Unwrap())
		}
		if n != c.want || (&Env{Root: c.root}).mounted() != nil {
			t.Errorf("%v: %v", c.root, e.mounted())
		}
		if status := platformCheck.Run(context.Background(), e).Status(); (status == Measured) != (c.want == 0) {
			t.Errorf("%v: platform is %s", c.root, status)
		}
		if status := quotaCheck.Run(context.Background(), e).Status(); (status == Unsupported) != (c.want == 0) {
			t.Errorf("%v: quota is %s", c.root, status)
		}
		if r := shiftsCheck.Run(context.Background(), e); c.want > 0 && (r.Status() == Measured || r.Data.(*ShiftsData).Suspended != 0) {
			t.Errorf("%v: %+v", c.root, r)
		}
	}
}
