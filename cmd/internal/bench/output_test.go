package bench

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/detent-go/detent/cmd/internal/machine"
)

// sample is a report with one row of each verdict and all that can go wrong.
func sample() *Report {
	op := spec{label: "one operation", metric: "op_ns", unit: unitNs}
	thread := spec{label: "lateness p50, nanosleep", metric: "late_p50_us", unit: unitUs, against: Nanosleep}
	r := &Report{
		Schema:   Schema,
		Machine:  machine.Info{CPUModel: "Some CPU", CPUs: 1, Kernel: "Linux 0", Clocksource: "hpet", Go: "go0", Waker: machine.WakerPortable, WakerReason: "no timerfd here", Environment: []string{"GOGC=1"}},
		Settings: Settings{Form: "short", Rounds: 3, Procs: 4},
		Rows: []*Row{
			op.row("startstop", "now, 0 pending", []float64{30, 30, 30}, []float64{10, 10, 10}),
			op.row("reset", "in order", []float64{10, 10, 10}, []float64{10, 10, 10}),
			thread.row("sleep", "", []float64{10, 10, 10}, []float64{40, 40, 40}),
		},
		Missing: []Missing{{Scenario: "gc", Case: "10M pending", Reason: "needs 6.0 GB of memory"}},
		Notes:   []string{"storm: something was disturbed"},
	}
	r.finish(0)
	return r
}

func TestTable(t *testing.T) {
	var b bytes.Buffer
	if err := sample().WriteTable(&b, false); err != nil {
		t.Fatal(err)
	}
	got := b.String()
	for _, want := range []string{
		"Some CPU, 1 CPU\n", "clocksource hpet", "GOMAXPROCS 4", "portable (no timerfd here)", "GOGC=1",
		"3 comparisons: 1 better, 1 the same within noise, 1 worse.",
		"Where detent is worse:\n  sleep, lateness p50, nanosleep: 40 us, not 10 us (0.25x)\n",
		"Not measured:\n  gc, 10M pending: needs 6.0 GB of memory\n",
		"storm: something was disturbed",
		"With 3 rounds the range says little",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing", want)
		}
	}
	// Each row stands on one line with both figures, the ratio and the verdict.
	for _, want := range [][]string{
		{"now, 0 pending: one operation", "30 ns", "10 ns", "3x", "better"},
		{"in order: one operation", "10 ns", "1x", "same"},
		{"lateness p50, nanosleep", "(10 us)", "40 us", "0.25x", "WORSE"},
	} {
		if !hasLine(got, want) {
			t.Errorf("no line with %q", want)
		}
	}
	if t.Failed() {
		t.Log(got)
	}
}

func hasLine(text string, parts []string) bool {
	for line := range strings.Lines(text) {
		all := true
		for _, p := range parts {
			all = all && strings.Contains(line, p)
		}
		if all {
			return true
		}
	}
	return false
}

// TestTableColor: colors change nothing but the colors.
func TestTableColor(t *testing.T) {
	var plain, color bytes.Buffer
	if err := errors.Join(sample().WriteTable(&plain, false), sample().WriteTable(&color, true)); err != nil {
		t.Fatal(err)
	}
	if plain.String() == color.String() {
		t.Error("no colors")
	}
	stripped := color.String()
	for {
		before, rest, ok := strings.Cut(stripped, "\x1b[")
		if !ok {
			break
		}
		_, after, _ := strings.Cut(rest, "m")
		stripped = before + after
	}
	trim := func(s string) string {
		var b strings.Builder
		for line := range strings.Lines(s) {
			b.WriteString(strings.TrimRight(line, " \n") + "\n")
		}
		return b.String()
	}
	if trim(stripped) != trim(plain.String()) {
		t.Errorf("without its colors the table is another:\n%s\n%s", stripped, plain.String())
	}
}

func TestTableWriteError(t *testing.T) {
	if err := sample().WriteTable(broken{}, false); err == nil {
		t.Error("a failed write went unnoticed")
	}
	if err := sample().WriteJSON(broken{}); err == nil {
		t.Error("a failed write of JSON went unnoticed")
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestProgressPlain(t *testing.T) {
	var b bytes.Buffer
	p := NewProgress(&b, false)
	sc := Scenarios()[:2]
	p.Show(Event{Scenario: sc[0], Index: 1, Total: 12})
	p.Show(Event{Scenario: sc[0], Index: 1, Total: 12, Round: 1, Rounds: 5})
	p.Show(Event{Scenario: sc[1], Index: 2, Total: 12})
	p.Close()
	if got := b.String(); strings.Count(got, "\n") != 2 || !strings.HasPrefix(got, "[ 1/12] startstop: ") || strings.Contains(got, "\x1b") {
		t.Errorf("progress %q", got)
	}
}

func TestProgressLive(t *testing.T) {
	var b bytes.Buffer
	p := NewProgress(&b, true)
	sc := Scenarios()[0]
	p.Show(Event{Scenario: sc, Index: 1, Total: 1})
	p.Show(Event{Scenario: sc, Index: 1, Total: 1, Round: 2, Rounds: 5})
	p.Close()
	got := b.String()
	if strings.Contains(got, "\n") || !strings.Contains(got, "setting up") || !strings.Contains(got, "round 2 of 5") {
		t.Errorf("progress %q", got)
	}
	if !strings.HasSuffix(got, "\r\x1b[K") {
		t.Errorf("the line is left on the terminal: %q", got)
	}
}
