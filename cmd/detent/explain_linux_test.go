//go:build amd64 || arm64

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/detent-go/detent/cmd/internal/explain"
	"github.com/detent-go/detent/cmd/internal/patient"
	"github.com/detent-go/detent/probe"
)

// explained is what detent explain says of a patient.
func explained(t *testing.T, f patient.Fault) (explain.Report, int) {
	t.Helper()
	needTracing(t)
	p := patient.Run(t, f)
	cmd := self(t, "explain", "--json", "--duration", "4s", fmt.Sprint(p.PID()))
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var r explain.Report
	if e := json.Unmarshal(stdout.Bytes(), &r); e != nil {
		t.Fatalf("%v, %v: %s%s", err, e, &stdout, &stderr)
	}
	t.Logf("%s %q, unseen %q", r.Verdict, ids(r), r.Unseen)
	return r, cmd.ProcessState.ExitCode()
}

func ids(r explain.Report) []string {
	var list []string
	for _, f := range r.Found {
		list = append(list, f.ID+" "+f.Severity.String())
	}
	return list
}

// ofMachine are what a process suffers from where others keep the machine busy, as
// other tests may do.
func ofMachine(id string) bool {
	return !strings.HasPrefix(id, "explain.") || id == "explain.cpu-contention" || id == "explain.late-interrupts" || id == "explain.clocksource"
}

// TestExplain: each patient's fault is named, none that it does not have is, and
// the healthy one is left in peace.
func TestExplain(t *testing.T) {
	for fault, want := range map[patient.Fault]string{
		patient.Healthy:   "",
		patient.NoVDSO:    "explain.vdso-hidden",
		patient.Direct:    "explain.direct-calls",
		patient.Throttled: "explain.throttled",
		patient.Saturated: "explain.go-saturated",
	} {
		t.Run(string(fault), func(t *testing.T) {
			r, code := explained(t, fault)
			i := slices.IndexFunc(r.Found, func(f probe.Finding) bool { return f.ID == want })
			if want != "" && i < 0 {
				t.Fatalf("%s is not among %q", want, ids(r))
			}
			// Where other programs want the CPUs, goroutines wait for a P too.
			contended := slices.ContainsFunc(r.Found, func(f probe.Finding) bool { return ofMachine(f.ID) })
			for j, f := range r.Found {
				// A quota over the tests themselves would be a fault of theirs.
				theirs := f.ID == "explain.throttled" && fault != patient.Throttled && r.Process.Quota != nil ||
					f.ID == "explain.go-saturated" && contended
				if j != i && f.Severity > probe.Info && !ofMachine(f.ID) && !theirs {
					t.Errorf("it has %s as well: %s", f.ID, f.Title)
				}
			}
			if len(r.Symptom) == 0 || r.Verdict == "" {
				t.Errorf("no symptoms or no verdict: %+v", r)
			}
			if want == "" {
				return
			}
			f := r.Found[i]
			if f.Severity < probe.Warning || len(f.Evidence) == 0 || len(f.Remedy) == 0 {
				t.Errorf("%+v", f)
			}
			if wantCode := map[probe.Severity]int{probe.Warning: exitWarning, probe.Critical: exitCritical}[r.Worst]; code != wantCode {
				t.Errorf("exit code %d with %s, want %d", code, r.Worst, wantCode)
			}
			if fault == patient.Direct && !strings.Contains(f.Title, "patient.HotLoop") {
				t.Errorf("the place is not named: %s", f.Title)
			}
		})
	}
}

// TestExplainText: people get the verdict first, the remedy, and what the watching cost.
func TestExplainText(t *testing.T) {
	needTracing(t)
	p := patient.Run(t, patient.Direct)
	out, err := self(t, "explain", "--duration", "1s", fmt.Sprint(p.PID())).Output()
	if err == nil {
		t.Errorf("exit status 0 for a patient:\n%s", out)
	}
	for _, want := range []string{"Symptoms", "explain.direct-calls", "=> ", "The watching took"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
}

// TestExplainGone: a process that is not there.
func TestExplainGone(t *testing.T) {
	needTracing(t)
	out, err := self(t, "explain", fmt.Sprint(1<<30)).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "not exist") {
		t.Errorf("%v: %s", err, out)
	}
}
