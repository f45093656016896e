package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func TestSleepUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"soon"}, `"soon"`},
		{[]string{"50"}, `"50"`},
		{[]string{"0s"}, "positive"},
		{[]string{"--", "-5us"}, "positive"},
		{[]string{"50us", "60us"}, "1 arg"},
		{[]string{"--count", "0"}, "--count"},
		{[]string{"--time", "-1s"}, "--time"},
		{[]string{"--way", "snoring"}, `"snoring" for --way: there are`},
		{[]string{"--progress", "loud"}, `"loud" for --progress`},
	} {
		code, stdout, stderr := run(append([]string{"sleep"}, c.args...)...)
		if code != exitUsage || stdout != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("%q: exit code %d, %q, %q", c.args, code, stdout, stderr)
		}
	}
}

func TestSleepTable(t *testing.T) {
	code, stdout, stderr := run("sleep", "20us", "--count", "20", "--time", "1m", "--progress", "plain")
	if code != exitOK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	for _, want := range []string{"sleeps of 20us", "time.Sleep", "timer.Sleep", "p50", "p999", "█"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is not in the table: %s", want, stdout)
		}
	}
	if !strings.Contains(stderr, "  0 % ") || !strings.Contains(stderr, "timer.Sleep, idle") {
		t.Errorf("progress: %q", stderr)
	}
}

func TestSleepJSON(t *testing.T) {
	code, stdout, stderr := run("sleep", "1us", "-n", "8", "--way", "time.Sleep", "--way", "timer.Sleep", "--busy", "--json")
	if code != exitOK || stderr != "" {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	var got struct {
		Schema    string
		Requested int64 `json:"requested_ns"`
		Ways      []struct {
			Name, Load, Error string
			Lateness          struct {
				Count   int64
				P50     int64 `json:"p50_ns"`
				Buckets []struct{ Count uint64 }
			}
		}
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatalf("%v: %s", err, stdout)
	}
	if got.Schema != "detent.sleep/1" || got.Requested != 1000 || len(got.Ways) != 4 {
		t.Fatalf("%+v", got)
	}
	for i, w := range got.Ways {
		if load := []string{"idle", "idle", "busy", "busy"}[i]; w.Load != load {
			t.Errorf("%s, %s where it should be %s", w.Name, w.Load, load)
		}
		if w.Error == "" && (w.Lateness.Count == 0 || w.Lateness.P50 < 0 || len(w.Lateness.Buckets) == 0) {
			t.Errorf("%+v", w)
		}
	}
}

// TestSleepInterrupt: what has been measured is shown.
func TestSleepInterrupt(t *testing.T) {
	stdout := interrupt(t, "", "sleep", "1us", "--count", "100000000", "--time", "1h", "--way", "time.Sleep", "--progress", "plain", "--json")
	if !json.Valid(stdout) || !bytes.Contains(stdout, []byte(`"error": "interrupted"`)) {
		t.Errorf("no report, or one that does not say that it is not whole: %s", stdout)
	}
}
