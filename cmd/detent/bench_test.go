package main

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/detent-go/detent/cmd/internal/patient"
)

// TestMain lets the test program be the command: bench starts its own
// executable for the workers, and tests interrupt it.
func TestMain(m *testing.M) {
	patient.Main()
	if len(os.Args) > 1 && slices.Contains([]string{"bench", "clock", "doctor", "lab", "sleep", "trace", "explain", "serve"}, os.Args[1]) {
		os.Exit(execute(os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

func run(args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	code = execute(args, &out, &err)
	return code, out.String(), err.String()
}

// TestUsageErrors: what is wrong is named, and nothing is measured.
func TestUsageErrors(t *testing.T) {
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"dance"}, []string{`unknown command "dance"`}},
		{[]string{"bench", "--fast"}, []string{"unknown flag: --fast", "detent bench --help"}},
		{[]string{"bench", "extra"}, []string{`unknown command "extra"`}},
		{[]string{"bench", "--timeout", "5 minutes"}, []string{`"5 minutes"`, "--timeout", "duration"}},
		{[]string{"bench", "--timeout", "-1s"}, []string{"-1s", "--timeout", "positive"}},
		{[]string{"bench", "--run", "sleep("}, []string{`"sleep("`, "--run", "missing closing )"}},
		{[]string{"bench", "--run", "nothing"}, []string{`"nothing"`, "startstop", "scaling"}},
		{[]string{"bench", "--rounds", "-2"}, []string{"-2", "--rounds", "1 or more"}},
		{[]string{"bench", "--rounds", "0"}, []string{"0", "--rounds", "1 or more"}},
		{[]string{"bench", "--rounds", "many"}, []string{`"many"`, "--rounds"}},
		{[]string{"bench", "--procs", "0"}, []string{"0", "--procs", "1 or more"}},
		{[]string{"bench", "--progress", "loud"}, []string{`"loud"`, "--progress", "plain"}},
		{[]string{"bench", "worker"}, []string{"1 arg"}},
	} {
		code, stdout, stderr := run(c.args...)
		if code != exitUsage {
			t.Errorf("%q: exit code %d, want %d", c.args, code, exitUsage)
		}
		if stdout != "" {
			t.Errorf("%q wrote to stdout: %s", c.args, stdout)
		}
		for _, want := range c.want {
			if !strings.Contains(stderr, want) {
				t.Errorf("%q: %q is not in the message: %s", c.args, want, stderr)
			}
		}
	}
}

func TestWorkerUnknownEngine(t *testing.T) {
	code, _, stderr := run("bench", "worker", "sundial")
	if code != exitFailed || !strings.Contains(stderr, "sundial") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

func TestHelp(t *testing.T) {
	for _, args := range [][]string{{}, {"--help"}} {
		if code, stdout, _ := run(args...); code != exitOK || !strings.Contains(stdout, "bench") {
			t.Errorf("%q: exit code %d: %s", args, code, stdout)
		}
	}
	code, stdout, _ := run("bench", "--help")
	if code != exitOK {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{"--full", "--json", "--run regexp", "--rounds", "--procs", "--progress", "--timeout", "--list"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%s is not in the help", want)
		}
	}
	if strings.Contains(stdout, "worker") {
		t.Error("the worker is not hidden")
	}
}

func TestList(t *testing.T) {
	code, stdout, _ := run("bench", "--list", "--run", "^s")
	var names []string
	for line := range strings.Lines(stdout) {
		names = append(names, strings.Fields(line)[0])
	}
	if want := []string{"startstop", "storm", "spread", "sleep", "scaling"}; code != exitOK || !slices.Equal(names, want) {
		t.Errorf("exit code %d, %q, want %q", code, names, want)
	}
}

// TestProcesses runs a scenario in real processes, at the number of rounds
// and procs that was asked for.
func TestProcesses(t *testing.T) {
	needWorkers(t)
	code, stdout, stderr := run("bench", "--run", "^sleep$", "--rounds", "2", "--procs", "1", "--json", "--progress", "plain")
	if code != exitOK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	var got struct {
		Schema   string
		Machine  struct{ Kernel, Clocksource, Waker string }
		Settings struct {
			Form          string
			Rounds, Procs int
			Scenarios     []string
		}
		Rows []struct {
			Metric  string
			Rounds  map[string][]float64
			Verdict string
		}
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatalf("%v: %s", err, stdout)
	}
	s := got.Settings
	if got.Schema != "detent.bench/1" || s.Form != "short" || s.Rounds != 2 || s.Procs != 1 || !slices.Equal(s.Scenarios, []string{"sleep"}) {
		t.Errorf("schema %q, settings %+v", got.Schema, s)
	}
	if len(got.Rows) < 2 || len(got.Rows[0].Rounds["detent_"+got.Rows[0].Metric]) != 2 {
		t.Errorf("rows %+v", got.Rows)
	}
	if !strings.Contains(stderr, "[1/1] sleep") {
		t.Errorf("no plain progress: %q", stderr)
	}
}

func TestTable(t *testing.T) {
	needWorkers(t)
	code, stdout, stderr := run("bench", "--run", "^sleep$", "--rounds", "1", "--progress", "none")
	if code != exitOK || stderr != "" {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	for _, want := range []string{"machine", "kernel", "clocksource", "GOMAXPROCS", "waker", "time", "detent", "lateness p50", "comparison"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is not in the table: %s", want, stdout)
		}
	}
	if strings.Contains(stdout, "\x1b[") {
		t.Error("colors where there is no terminal")
	}
}

func TestTimeout(t *testing.T) {
	needWorkers(t)
	code, stdout, stderr := run("bench", "--run", "^idle$", "--timeout", "1ms", "--progress", "none")
	if code != exitFailed || !strings.Contains(stderr, "--timeout") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	if !strings.Contains(stdout, "Nothing has been measured") || !strings.Contains(stdout, "Stopped after") {
		t.Errorf("the report does not say so: %s", stdout)
	}
}

// TestInterrupt sends what Ctrl-C sends once the measuring has begun.
func TestInterrupt(t *testing.T) {
	stdout := interrupt(t, "", "bench", "--run", "^(sleep|idle)$", "--rounds", "100000", "--progress", "plain")
	if !bytes.Contains(stdout, []byte("Stopped after")) {
		t.Errorf("no report: %s", stdout)
	}
}
