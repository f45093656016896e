package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/detent-go/detent/cmd/internal/machine"
)

// tiny is a plan whose scenarios take milliseconds.
func tiny() Plan {
	burst := Burst{N: 100, Window: 5 * time.Millisecond, Lead: 20 * time.Millisecond, Gap: time.Millisecond}
	fresh := burst
	fresh.Fresh = true
	return Plan{
		Form:        "short",
		Rounds:      2,
		Window:      time.Millisecond,
		Pending:     []int{100},
		ChurnWindow: 2 * time.Millisecond,
		ChurnTimers: 10,
		Storm:       fresh,
		Spread:      burst,
		Memory:      100,
		Idle:        100,
		IdleWindow:  time.Millisecond,
		Sleeps:      2,
		PaceWindow:  2 * time.Millisecond,
		Pace:        burst,
		LoadWindow:  time.Millisecond,
		LoadPairs:   2,
		LaneLead:    time.Millisecond,
	}
}

// pipe is a worker in a goroutine of this process.
type pipe struct {
	io.WriteCloser
	io.Reader
	done chan error
}

func (p pipe) Close() error {
	_ = p.WriteCloser.Close()
	return <-p.done
}

func inProcess(ctx context.Context, side string, _ int) (io.ReadWriteCloser, error) {
	reqR, reqW := io.Pipe()
	respR, respW := io.Pipe()
	p := pipe{reqW, respR, make(chan error, 1)}
	context.AfterFunc(ctx, func() {
		reqR.CloseWithError(ctx.Err())
		respW.CloseWithError(ctx.Err())
	})
	go func() {
		err := Serve(side, reqR, respW)
		respW.CloseWithError(err)
		p.done <- err
	}()
	return p, nil
}

func runTiny(t *testing.T, name string) *Report {
	t.Helper()
	scenarios, err := Select(regexp.MustCompile("^" + name + "$"))
	if err != nil {
		t.Fatal(err)
	}
	return Run(t.Context(), Config{Plan: tiny(), Procs: 2, Scenarios: scenarios, Spawn: inProcess})
}

// TestScenarios: each gives rows with a figure for every round, and both
// reports can be written.
func TestScenarios(t *testing.T) {
	for _, sc := range Scenarios() {
		t.Run(sc.Name, func(t *testing.T) {
			r := runTiny(t, sc.Name)
			for _, m := range r.Missing {
				if m.Failed {
					t.Errorf("failed: %s: %s", m.Case, m.Reason)
				}
			}
			if len(r.Rows) == 0 {
				t.Fatal("no rows")
			}
			var names []string
			for _, row := range r.Rows {
				names = append(names, row.name())
				if row.Scenario != sc.Name {
					t.Errorf("a row of %s", row.Scenario)
				}
				for _, side := range []string{row.Against, Detent} {
					if got := row.Rounds[side+"_"+row.Metric]; len(got) != 2 {
						t.Errorf("%s: %s has %d rounds of 2", row.name(), side, len(got))
					}
				}
				if row.Metric == "early" && (row.other() != 0 || row.detent() != 0) {
					t.Errorf("fired early: %v of package time's, %v of detent's", row.other(), row.detent())
				}
			}
			slices.Sort(names)
			if unique := slices.Compact(slices.Clone(names)); len(unique) != len(names) {
				t.Errorf("rows that a reader cannot tell apart: %q", names)
			}
			if s := r.Summary; s.Better+s.Same+s.Worse != len(r.Rows) {
				t.Errorf("%+v counts other than %d rows", s, len(r.Rows))
			}
			var table, js bytes.Buffer
			if err := r.WriteTable(&table, false); err != nil {
				t.Error(err)
			}
			if err := r.WriteJSON(&js); err != nil {
				t.Error(err)
			}
			if !json.Valid(js.Bytes()) {
				t.Error("no JSON")
			}
		})
	}
}

func TestSelect(t *testing.T) {
	if all, err := Select(nil); err != nil || len(all) != len(Scenarios()) {
		t.Errorf("%d without a regexp, %v", len(all), err)
	}
	some, err := Select(regexp.MustCompile("sleep|load"))
	if err != nil || len(some) != 2 || some[0].Name != "sleep" || some[1].Name != "load" {
		t.Errorf("selected %v, %v", some, err)
	}
	if _, err := Select(regexp.MustCompile("nothing")); err == nil || !strings.Contains(err.Error(), "startstop") {
		t.Errorf("error %v does not name what there is", err)
	}
}

// TestInterrupted: what has been measured before the end is reported, whole
// pairs only, and what was asked for after it is not begun.
func TestInterrupted(t *testing.T) {
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	scenarios, _ := Select(regexp.MustCompile("^(sleep|load)$"))
	var seen []string
	r := Run(ctx, Config{
		Plan: tiny(), Procs: 2, Scenarios: scenarios, Spawn: inProcess,
		Progress: func(e Event) {
			seen = append(seen, e.Scenario.Name)
			if e.Round == 2 {
				cancel(why)
			}
		},
	})
	if r.Stopped != why.Error() {
		t.Errorf("stopped by %q", r.Stopped)
	}
	if slices.Contains(seen, "load") {
		t.Error("the next scenario was begun")
	}
	if len(r.Rows) == 0 {
		t.Error("the first round has been lost")
	}
	for _, row := range r.Rows {
		if len(row.Compare.Pairs) != 1 {
			t.Errorf("%s: %d pairs of the one complete round", row.name(), len(row.Compare.Pairs))
		}
	}
	if r.Failed() != 0 {
		t.Errorf("an interrupt counts as failure: %v", r.Missing)
	}
	var b bytes.Buffer
	if err := r.WriteTable(&b, false); err != nil || !strings.Contains(b.String(), "Stopped after") {
		t.Errorf("the table does not say that it was stopped (%v)", err)
	}
}

// TestWorkerFails: one scenario's failure is reported with what the worker
// said, and ends that scenario alone.
func TestWorkerFails(t *testing.T) {
	scenarios, _ := Select(regexp.MustCompile("^(memory|gc)$"))
	starts := 0
	r := Run(t.Context(), Config{
		Plan: tiny(), Procs: 2, Scenarios: scenarios,
		Spawn: func(ctx context.Context, side string, procs int) (io.ReadWriteCloser, error) {
			if starts++; starts == 1 {
				return nil, errors.New("no more processes")
			}
			return inProcess(ctx, side, procs)
		},
	})
	if r.Failed() != 1 || !strings.Contains(r.Missing[0].Reason, "no more processes") {
		t.Errorf("missing: %v", r.Missing)
	}
	if len(r.Rows) == 0 || r.Rows[0].Scenario != "gc" {
		t.Error("the next scenario did not run")
	}
}

// TestNoRoom: a case too big for the machine is left out and named.
func TestNoRoom(t *testing.T) {
	if _, ok := machine.AvailableMemory(); !ok {
		t.Skip("this system does not tell how much memory is free")
	}
	scenarios, _ := Select(regexp.MustCompile("^gc$"))
	plan := tiny()
	plan.Pending = []int{100, math.MaxInt}
	r := Run(t.Context(), Config{Plan: plan, Procs: 2, Scenarios: scenarios, Spawn: inProcess})
	if len(r.Missing) != 1 || !strings.Contains(r.Missing[0].Reason, "memory") || r.Missing[0].Failed {
		t.Errorf("missing: %v", r.Missing)
	}
	if len(r.Rows) != 1 {
		t.Errorf("%d rows instead of the one that fits", len(r.Rows))
	}
}

// TestLeadTooShort: a burst whose timers cannot be started in time is started
// again with more.
func TestLeadTooShort(t *testing.T) {
	plan := tiny()
	plan.Spread.Lead = 0
	scenarios, _ := Select(regexp.MustCompile("^spread$"))
	r := Run(t.Context(), Config{Plan: plan, Procs: 2, Scenarios: scenarios, Spawn: inProcess})
	if r.Failed() != 0 || len(r.Rows) == 0 {
		t.Errorf("%d rows, missing %v", len(r.Rows), r.Missing)
	}
}

func TestServeErrors(t *testing.T) {
	serve := func(side, in string) (string, error) {
		var out bytes.Buffer
		err := Serve(side, strings.NewReader(in), &out)
		return out.String(), err
	}
	if _, err := serve("sundial", ""); err == nil || !strings.Contains(err.Error(), "sundial") {
		t.Errorf("an unknown engine: %v", err)
	}
	if _, err := serve(Time, "{"); err == nil {
		t.Error("half a request was taken")
	}
	for _, req := range []string{
		`{"op":"dance"}`, `{"op":"startstop","mode":"x"}`, `{"op":"sleep"}`, `{"op":"sleep","n":1,"mode":"x"}`,
		`{"op":"load","mode":"x"}`, `{"op":"load","lane":"x"}`,
		`{"op":"lane"}`, `{"op":"lane","d_ns":1,"lane":"x"}`, `{"op":"lane","d_ns":1,"lane":"plain","mode":"x"}`, `{"op":"parallel","mode":"x"}`, `{"op":"reset"}`, `{"op":"memory"}`,
		`{"op":"arm"}`, `{"op":"wait"}`, `{"op":"collect"}`,
	} {
		out, err := serve(Time, req)
		if err != nil || !strings.Contains(out, `"error"`) {
			t.Errorf("%s: %q, %v", req, out, err)
		}
	}
}

// TestBurstUnfinished: a window's figures are not given before it has ended.
func TestBurstUnfinished(t *testing.T) {
	h := &host[timeHandle]{engine: timeEngine{}}
	if _, err := h.arm(request{N: 1, K: 1, Window: time.Second, Lead: time.Hour}); err != nil {
		t.Fatal(err)
	}
	defer stopAll(h.burst.timers)
	if _, err := h.collect(request{}); err == nil {
		t.Error("figures of a window that has not ended")
	}
	if _, err := h.arm(request{N: 1, K: 1, Window: time.Second}); err == nil {
		t.Error("armed twice")
	}
}

// TestBurstCounts: early and twice are seen, by an engine that does both.
func TestBurstCounts(t *testing.T) {
	h := &host[timeHandle]{engine: hasty{calls: new(int)}}
	if _, err := h.arm(request{N: 4, K: 1, Window: time.Second, Lead: time.Hour}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.wait(); err != nil {
		t.Fatal(err)
	}
	v, err := h.collect(request{})
	if err != nil || v["early"] != 4 {
		t.Errorf("%v early of 4, %v", v["early"], err)
	}
	h = &host[timeHandle]{engine: hasty{twice: true, calls: new(int)}}
	if _, err := h.arm(request{N: 4, K: 1, Window: time.Second, Lead: time.Hour}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.collect(request{}); err == nil {
		t.Error("timers that fired twice passed")
	}
}

// hasty fires when a timer is started. With twice set the first fires two
// times instead and the fourth never.
type hasty struct {
	timeEngine
	twice bool
	calls *int
}

func (e hasty) AfterFunc(_ time.Duration, f func()) timeHandle {
	*e.calls++
	const warmUp = 1 // the first call is not one of the burst's
	switch n := *e.calls - warmUp; {
	case e.twice && n == 1:
		f()
		f()
	case e.twice && n == 4:
	default:
		f()
	}
	return time.AfterFunc(time.Hour, nop)
}
