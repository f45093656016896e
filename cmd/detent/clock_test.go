package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func TestClockUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"extra"}, "extra"},
		{[]string{"--quick", "--thorough"}, "quick"},
		{[]string{"--fast"}, "unknown flag: --fast"},
	} {
		code, stdout, stderr := run(append([]string{"clock"}, c.args...)...)
		if code != exitUsage || stdout != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("%q: exit code %d, %q, %q", c.args, code, stdout, stderr)
		}
	}
}

func TestClockTable(t *testing.T) {
	code, stdout, stderr := run("clock", "--quick")
	if code != exitOK || stderr != "" {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	for _, want := range []string{"time.Now", "clock.Mono", "clock.TSC.Ordered", "least", "resolution", "bound", "system call"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is not in the table: %s", want, stdout)
		}
	}
	if strings.Contains(stdout, "\x1b[") {
		t.Error("colors where there is no terminal")
	}
}

func TestClockJSON(t *testing.T) {
	code, stdout, stderr := run("clock", "--quick", "--json")
	if code != exitOK || stderr != "" {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	var got struct {
		Schema  string
		Machine struct{ Go string }
		Clocks  []struct {
			Package, Name string
			Cost          struct {
				Least float64 `json:"least_ns"`
			}
		}
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatalf("%v: %s", err, stdout)
	}
	var names []string
	for _, c := range got.Clocks {
		names = append(names, c.Package+"."+c.Name)
		if c.Cost.Least <= 0 {
			t.Errorf("%s costs %v", c.Name, c.Cost.Least)
		}
	}
	if got.Schema != "detent.clock/1" || got.Machine.Go == "" || !slices.Contains(names, "time.Now") || !slices.Contains(names, "clock.Raw") {
		t.Errorf("schema %q, machine %+v, clocks %q", got.Schema, got.Machine, names)
	}
}
