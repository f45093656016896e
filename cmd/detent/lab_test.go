package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/detent-go/detent/lab"
)

// TestLabUsage: what is wrong is named, and nothing is measured.
func TestLabUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"lab", "run"}, "requires at least 1 arg"},
		{[]string{"lab", "run", "sundial"}, "sundial"},
		{[]string{"lab", "run", "sundial"}, "lateness"}, // what there is
		{[]string{"lab", "run", "sleep", "Sleep"}, `"Sleep"`},
		{[]string{"lab", "all", "sleep"}, "sleep"},
		{[]string{"lab", "list", "sleep"}, "sleep"},
		{[]string{"lab", "sundial"}, "sundial"},
		{[]string{"lab", "all", "--json", "--markdown"}, "json"},
		{[]string{"lab", "all", "--progress", "loud"}, "loud"},
		{[]string{"lab", "all", "--thorough"}, "thorough"},
	} {
		code, stdout, stderr := run(c.args...)
		if code != exitUsage || stdout != "" || !strings.Contains(stderr, c.want) || !strings.Contains(stderr, "--help") {
			t.Errorf("%q: exit code %d: %s%s", c.args, code, stdout, stderr)
		}
	}
}

func TestLabList(t *testing.T) {
	code, stdout, stderr := run("lab", "list")
	if code != exitOK || stderr != "" {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	for _, e := range lab.Experiments() {
		if !strings.Contains(stdout, e.Name+" ") || !strings.Contains(stdout, e.Title) {
			t.Errorf("%s is not in the list:\n%s", e.Name, stdout)
		}
	}
	if code, stdout, _ := run("lab"); code != exitOK || !strings.Contains(stdout, "lab list") {
		t.Errorf("exit code %d: %s", code, stdout)
	}
}

// TestLabRun makes the shortest experiment, and shows it in every form.
func TestLabRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lab.html")
	code, stdout, stderr := run("lab", "run", "functions", "--short", "--html", file)
	if code != exitOK || !strings.Contains(stdout, "MarshalJSON") || !strings.Contains(stdout, "NOT RUN") || strings.Contains(stdout, "\x1b[") {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
	if !strings.Contains(stderr, "experiment 1 of 1: functions, about ") {
		t.Errorf("no progress: %s", stderr)
	}
	if html, err := os.ReadFile(file); err != nil || !strings.Contains(string(html), "plot-functions") {
		t.Errorf("the page: %v", err)
	}
	code, stdout, stderr = run("lab", "run", "functions", "--short", "--json", "--progress", "none")
	var r lab.Report
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != exitOK || stderr != "" || r.Schema != lab.Schema || len(r.Results) != 1 || len(r.Claims) == 0 {
		t.Errorf("exit code %d, %v: %s%s", code, err, stdout, stderr)
	}
	if code, stdout, _ := run("lab", "run", "functions", "--short", "--markdown", "--progress", "none"); code != exitOK || !strings.HasPrefix(stdout, "# The lab\n") {
		t.Errorf("exit code %d: %s", code, stdout)
	}
	if code, _, stderr := run("lab", "run", "functions", "--short", "--progress", "none", "--html", filepath.Join(file, "none")); code != exitFailed || !strings.Contains(stderr, "writing the page") {
		t.Errorf("a page that cannot be written: exit code %d: %s", code, stderr)
	}
}

// TestLabInterrupt sends what Ctrl-C sends once the second experiment has begun: the
// first is shown.
func TestLabInterrupt(t *testing.T) {
	stdout := interrupt(t, "sleep", "lab", "run", "functions", "sleep", "--json")
	var r lab.Report
	if err := json.Unmarshal(stdout, &r); err != nil || r.Stopped != "interrupted" || len(r.Results) == 0 || len(r.Results[0].Figures) == 0 {
		t.Errorf("what was done is not kept: %v: %s", err, stdout)
	}
}
