package doctor

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/detent-go/detent/cmd/internal/browsertest"
	"github.com/detent-go/detent/probe"
)

var update = flag.Bool("update", false, "write the golden files anew")

// sick is a report with something of everything. Its text tries to break out.
func sick() *probe.Report {
	call := probe.Cost{Least: 174, Typical: 180}
	return &probe.Report{
		Version: probe.ReportVersion,
		Started: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), Took: 12_340 * time.Millisecond,
		Machine: probe.Machine{OS: "linux", Arch: "amd64", Kernel: "6.1.0-9-amd64", CPU: "Some CPU <b>", CPUs: 2, Hypervisor: "kvm", Go: "go1.26", GOMAXPROCS: 2},
		Results: []probe.Result{
			{
				Check: "clocksource",
				Findings: []probe.Finding{{
					ID: "clocksource.unstable", Severity: probe.Critical, Confidence: probe.Certain,
					Title:    "the kernel has marked the TSC unstable and reads hpet: every time.Now is a system call",
					Detail:   "A reading of hpet takes a microsecond or more, one CPU at a time.",
					Evidence: []probe.Evidence{{Name: "current", Value: "hpet", Source: "/sys/devices/system/clocksource/clocksource0/current_clocksource"}, {Name: "reason", Value: "</script><script>throw 1</script>", Source: "kmsg"}},
					Remedy:   []string{"echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource", "boot with tsc=reliable if the machine's TSC is sound"},
				}},
			},
			{
				Check: "quota", Err: fmt.Errorf("cpu.stat: %w (run as root)", fs.ErrPermission),
				Findings: []probe.Finding{
					{ID: "cpu.quota", Severity: probe.Notice, Confidence: probe.Likely, Title: "a CPU quota of 1.5 CPUs", Because: "clocksource.unstable", Evidence: []probe.Evidence{}},
					{ID: "a.fact", Severity: probe.Info, Confidence: probe.Possible, Title: "a fact"},
				},
			},
			{Check: "ptp", Err: errors.ErrUnsupported},
			{Check: "clocks", Data: &probe.ClocksData{Clocks: []probe.ClockCost{
				{Package: "time", Name: "Now", Clock: -1, How: "runtime", Cost: probe.Cost{Least: 42.4, Typical: 1043}, Step: 40},
				{Package: "clock", Name: "Mono", How: "system call", Why: "no vDSO", Cost: probe.Cost{Least: 174, Typical: 180}, Syscall: &call, Resolution: 1},
			}}},
			{Check: "counter", Data: &probe.CounterData{
				Frequency: 2.6e9, FrequencyError: 44, Over: 2500 * time.Millisecond, Stated: 2.599998e9, StatedBy: "CPUID 15h", Samples: 1980,
				Slew: 12, SlewError: 34, Plan: "all pairs",
				CPUs: []probe.Place{{CPU: 0}, {CPU: 1}, {CPU: 4}},
				Pairs: []probe.PairOffset{
					{From: 0, To: 1, RoundTrip: 100, MedianTrip: 110, Low: -50, High: 50},
					{From: 0, To: 4, RoundTrip: 300, MedianTrip: 310, Low: 1000, High: 1300, Apart: true},
					{From: 1, To: 4, Error: "gone"},
				},
				Groups: []probe.OffsetGroup{{Relation: "cores of a node", Pairs: 2, RoundTrip: 100, MedianTrip: 110, Bound: 1300, Apart: 1}},
			}},
			{Check: "steps", Data: &probe.StepsData{Counts: []probe.StepCount{
				{Clock: "time.Now", Promise: probe.PromiseWall, Method: probe.Shared, Threads: 2, Readings: 1e7, Back: 3, Worst: 2100},
			}}},
			{Check: "sleep", Data: sleeps()},
			{Check: "pauses", Data: &probe.PausesData{Pinned: true, Steal: 0.01, CPUs: []probe.CPUPauses{
				{
					CPU: 3, For: time.Second, Readings: 4e7, Gaps: lateness(9_000, 300), Preempted: probe.PauseSum{Count: 3, Total: 30 * time.Millisecond, Longest: 20 * time.Millisecond},
				},
			}}},
		},
	}
}

// lateness spreads n values over powers of two times from.
func lateness(from time.Duration, n int64) probe.Distribution {
	d := probe.Distribution{Count: n, Min: from, Mean: 2 * from, P50: 2 * from, P90: 3 * from, P99: 20 * from, P999: 40 * from, Max: 63 * from}
	for i, part := range []int64{10, 60, 20, 0, 9, 1} {
		if part > 0 {
			d.Buckets = append(d.Buckets, probe.Bucket{From: from << i, To: from<<i + from<<i/8 - 1, Count: uint64(n * part / 100)})
		}
	}
	return d
}

func sleeps() *probe.SleepData {
	return &probe.SleepData{Requested: 50 * time.Microsecond, Ways: []probe.SleepWay{
		{Name: probe.SleepPrecise, Load: probe.Idle, Slack: 1, Lateness: lateness(9_000, 1000)},
		{Name: probe.SleepTimerfd, Load: probe.Idle, Error: "timerfd_create: function not implemented"},
		{Name: probe.SleepTime, Load: probe.Idle, Lateness: lateness(270_000, 50)},
		{Name: probe.SleepDetent, Load: probe.Busy, Lateness: lateness(10_000, 300), Early: 2, EarlyBy: 700},
	}}
}

func healthy() *probe.Report {
	return &probe.Report{Version: 1, Took: time.Second, Machine: probe.Machine{OS: "plan9", Arch: "arm"}}
}

func TestVerdict(t *testing.T) {
	notice := whole()
	notice.Results[0].Findings = []probe.Finding{{Severity: probe.Notice, Title: "x"}}
	for _, c := range []struct {
		r    *probe.Report
		want string
	}{
		{notice, "This machine keeps time as it should; 1 thing costs precision or time in some programs."},
		{sick(), "1 critical fault, 1 notice. First of all: the kernel has marked the TSC unstable and reads hpet: every time.Now is a system call."},
	} {
		if got := Verdict(c.r); got != c.want {
			t.Errorf("%q\nwant %q", got, c.want)
		}
	}
}

// TestText compares with testdata/*.txt; -update writes them.
func TestText(t *testing.T) {
	for name, r := range map[string]*probe.Report{"sick": sick(), "healthy": whole()} {
		for _, width := range []int{80, 20} {
			var b bytes.Buffer
			if err := WriteText(&b, r, width, false); err != nil {
				t.Fatal(err)
			}
			golden(t, fmt.Sprintf("%s-%d.txt", name, width), b.Bytes())
		}
	}
	var plain, colored bytes.Buffer
	if err := errors.Join(WriteText(&plain, sick(), 80, false), WriteText(&colored, sick(), 80, true)); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(plain.String(), "\x1b") || !strings.Contains(colored.String(), "\x1b[") {
		t.Error("colours where there should be none, or none where there should be")
	}
}

// TestMeasured compares with testdata/measured-*.txt.
func TestMeasured(t *testing.T) {
	all := sick().Results
	for _, r := range all {
		if r.Check != "clocks" && r.Check != "sleep" {
			continue
		}
		var b bytes.Buffer
		report := &probe.Report{Machine: sick().Machine, Results: []probe.Result{r}}
		if err := WriteMeasured(&b, report, 100, false); err != nil {
			t.Fatal(err)
		}
		golden(t, fmt.Sprintf("measured-%s.txt", r.Check), b.Bytes())
	}
}

// golden compares with a file of testdata; -update writes it.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what is written:\n%s", file, got)
	}
}

// TestLateBars: every value is in a row, rows follow one another, and there are not
// too many.
func TestLateBars(t *testing.T) {
	for _, buckets := range [][]probe.Bucket{
		{{From: 0, To: 0, Count: 3}, {From: 1, To: 1, Count: 4}, {From: 2, To: 2, Count: 1}},
		{{From: 9000, To: 9100, Count: 3}},
		{{From: 15, To: 15, Count: 1}, {From: 1 << 40, To: 1<<40 + 7, Count: 2}},
		{{From: 8192, To: 9215, Count: 5}, {From: 12288, To: 13311, Count: 7}, {From: 1 << 20, To: 1<<20 + 1, Count: 1}},
		nil,
	} {
		d := probe.Distribution{Buckets: buckets}
		want := 0.0
		for _, b := range buckets {
			d.Count += int64(b.Count)
			want += float64(b.Count)
		}
		got, end := 0.0, ""
		rows := lateBars("", d).rows
		for i, r := range rows {
			got += r.value
			from, to, _ := strings.Cut(r.label, " - ")
			if i > 0 && from != end {
				t.Errorf("%v: %q after %q", buckets, r.label, end)
			}
			end = to
		}
		if got != want || len(rows) > 64 || len(rows) > 0 && (rows[0].value == 0 || rows[len(rows)-1].value == 0) {
			t.Errorf("%v: %v", buckets, rows)
		}
	}
}

func TestBars(t *testing.T) {
	w := &terminal{width: 40}
	w.bars(bars{title: "title", rows: []bar{{"1 us", 100, "50 %"}, {"1 ms", 1, "0.5 %"}, {"none", 0, "0 %"}}})
	lines := strings.Split(w.b.String(), "\n")
	count := func(s string) int { return strings.Count(s, "█") }
	if full, least, none := count(lines[2]), lines[3], lines[4]; full < 10 || count(least) != 0 || !strings.ContainsRune(least, '▏') && !strings.ContainsRune(least, '▎') || strings.ContainsRune(none, '▏') {
		t.Errorf("bars are not in proportion:\n%s", w.b.String())
	}
}

func TestJSON(t *testing.T) {
	for _, r := range []*probe.Report{sick(), healthy()} {
		var b bytes.Buffer
		if err := WriteJSON(&b, r); err != nil {
			t.Fatal(err)
		}
		var got struct {
			Schema, Verdict, Severity string
			Findings                  []struct{ ID string }
			Report                    struct{ Results []any }
		}
		if err := json.Unmarshal(b.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		if got.Schema != "detent.doctor/1" || got.Verdict != Verdict(r) || got.Severity != r.Worst().String() ||
			len(got.Findings) != len(r.Findings()) || len(got.Report.Results) != len(r.Results) || got.Findings == nil {
			t.Errorf("%s", b.Bytes())
		}
	}
}

// TestHTML has a browser draw the page.
func TestHTML(t *testing.T) {
	var b bytes.Buffer
	if err := WriteHTML(&b, sick()); err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(b.Bytes(), []byte("<script>throw")) || bytes.Contains(b.Bytes(), []byte("CPU <b>")) {
		t.Error("text breaks out of the page")
	}
	for _, want := range []string{"clocksource.unstable", "run as root", "clock.Mono", `class="finding critical"`, "boot with tsc=reliable"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in the page", want)
		}
	}
	file := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	tab := browsertest.Open(t, 1100, 900)
	tab.Run(chromedp.Navigate("file://" + file))
	for _, id := range []string{"clocks", "offsets", "sleep-idle", "sleep-busy", "pauses"} {
		tab.Until("the plots are drawn", `document.querySelectorAll("#`+id+` svg path").length > 3`)
	}
	var overflow bool
	tab.Eval(`document.documentElement.scrollWidth > innerWidth`, &overflow)
	if overflow {
		t.Error("the page is wider than the window")
	}
	tab.Shoot("doctor")
	if p := tab.Problems(); len(p) > 0 {
		t.Errorf("the console complains: %q", p)
	}
}
