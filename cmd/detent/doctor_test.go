package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tree makes a directory with files of another machine.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const clocksources = "sys/devices/system/clocksource/clocksource0/"

func TestDoctorUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--quick", "--thorough"}, "quick"},
		{[]string{"--checks", "stars"}, `"stars"`},
		{[]string{"--root", "/nowhere/at/all"}, "/nowhere/at/all"},
		{[]string{"--progress", "loud"}, `"loud"`},
		{[]string{"--checks", ""}, "--list"},
		{[]string{"extra"}, "extra"},
	} {
		code, stdout, stderr := run(append([]string{"doctor"}, c.args...)...)
		if code != exitUsage || stdout != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("%q: exit code %d, %q, %q", c.args, code, stdout, stderr)
		}
	}
}

// TestDoctorExit: the exit status says how bad it is.
func TestDoctorExit(t *testing.T) {
	for _, c := range []struct {
		clocksource string
		code        int
	}{
		{"tsc", exitOK}, {"kvm-clock", exitOK}, {"hpet", exitCritical},
	} {
		root := tree(t, map[string]string{
			clocksources + "current_clocksource":   c.clocksource + "\n",
			clocksources + "available_clocksource": "tsc hpet acpi_pm kvm-clock\n",
			"proc/cpuinfo":                         "processor\t: 0\nvendor_id\t: GenuineIntel\nflags\t\t: fpu tsc constant_tsc nonstop_tsc\n",
		})
		code, stdout, stderr := run("doctor", "--root", root, "--checks", "clocksource", "--json")
		if code != c.code || stderr != "" {
			t.Errorf("%s: exit code %d, want %d; %s", c.clocksource, code, c.code, stderr)
		}
		var got struct{ Verdict string }
		if err := json.Unmarshal([]byte(stdout), &got); err != nil || got.Verdict == "" {
			t.Errorf("%s: %v: %s", c.clocksource, err, stdout)
		}
	}
}

func TestDoctorHTML(t *testing.T) {
	root := tree(t, map[string]string{clocksources + "current_clocksource": "tsc\n"})
	file := filepath.Join(t.TempDir(), "report.html")
	code, stdout, stderr := run("doctor", "--root", root, "--checks", "clocksource", "--html", file, "--progress", "plain")
	if code != exitOK || !strings.Contains(stdout, "Nothing is wrong") || !strings.Contains(stderr, "clocksource") {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
	if html, err := os.ReadFile(file); err != nil || !strings.Contains(string(html), "Nothing is wrong") {
		t.Errorf("the page: %v", err)
	}
	if code, _, stderr := run("doctor", "--root", root, "--html", filepath.Join(root, "none", "x.html")); code != exitFailed || !strings.Contains(stderr, "none") {
		t.Errorf("a page that cannot be written: exit code %d: %s", code, stderr)
	}
}

func TestDoctorList(t *testing.T) {
	if code, stdout, _ := run("doctor", "--list"); code != exitOK || !strings.Contains(stdout, "clocksource") {
		t.Errorf("exit code %d: %s", code, stdout)
	}
}
