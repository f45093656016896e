package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"runtime"
	"slices"
	"testing"
	"testing/fstest"
	"time"
)

// hpetMachine is the least that has a finding.
var hpetMachine = fstest.MapFS{
	"sys/devices/system/clocksource/clocksource0/current_clocksource":   {Data: []byte("hpet\n")},
	"sys/devices/system/clocksource/clocksource0/available_clocksource": {Data: []byte("hpet acpi_pm \n")},
}

// A report has no negative durations, whatever the clock does.
func TestSince(t *testing.T) {
	if d := since(time.Now().Add(time.Hour)); d != 0 {
		t.Errorf("since an hour from now: %v", d)
	}
	if d := since(time.Now().Add(-time.Hour)); d < time.Hour {
		t.Errorf("since an hour ago: %v", d)
	}
}

func TestRunOverTree(t *testing.T) {
	var seen []Progress
	report, err := Run(context.Background(), Options{
		Checks: []string{"clocksource"}, Root: hpetMachine,
		Progress: func(p Progress) { seen = append(seen, p) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Results) != 1 || report.Results[0].Check != "clocksource" || report.Results[0].Took < 0 {
		t.Fatalf("results: %+v", report.Results)
	}
	if f := report.Findings(); len(f) == 0 || f[0].ID != "clocksource.no-vdso" || report.Worst() != Critical {
		t.Fatalf("findings of a machine on hpet: %+v", f)
	}
	want := []Progress{{Check: "clocksource", Total: 1}, {Done: 1, Total: 1}}
	if !slices.Equal(seen, want) {
		t.Errorf("progress %+v, want %+v", seen, want)
	}
}

// On whatever machine the test runs: every check answers, in every build.
func TestRunOnThisMachine(t *testing.T) {
	report, err := Run(context.Background(), Options{Effort: Quick})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Results) != len(Checks()) || report.Machine.Go != runtime.Version() {
		t.Errorf("%d results of %d checks, machine %+v", len(report.Results), len(Checks()), report.Machine)
	}
	for _, r := range report.Results {
		t.Logf("%-12s %-11s %v %v", r.Check, r.Status(), r.Took.Round(time.Microsecond), r.Err)
		if r.Data == nil && r.Err == nil {
			t.Errorf("%s: neither data nor an error", r.Check)
		}
		for _, f := range r.Findings {
			t.Logf("    %v, %v: %s: %s", f.Severity, f.Confidence, f.ID, f.Title)
		}
	}
	if _, err := json.Marshal(report); err != nil {
		t.Error(err)
	}
}

func TestRunUnknownCheck(t *testing.T) {
	report, err := Run(context.Background(), Options{Checks: []string{"clocksource", "astrology"}})
	if report != nil || !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("report %v, error %v", report, err)
	}
}

func TestRunEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	report, err := Run(ctx, Options{})
	if !errors.Is(err, context.Canceled) || report == nil || len(report.Results) != 0 {
		t.Errorf("report %+v, error %v", report, err)
	}
}

func TestFindingsInOrder(t *testing.T) {
	f := func(s Severity, c Confidence, id string) Finding {
		return Finding{ID: id, Severity: s, Confidence: c}
	}
	r := Report{Results: []Result{
		{Findings: []Finding{f(Info, Certain, "b"), f(Critical, Likely, "z"), f(Info, Certain, "a")}},
		{Findings: []Finding{f(Warning, Possible, "a"), f(Critical, Certain, "y"), f(Critical, Likely, "c")}},
	}}
	var got []string
	for _, f := range r.Findings() {
		got = append(got, f.Severity.String()+" "+f.ID)
	}
	want := []string{"critical y", "critical c", "critical z", "warning a", "info a", "info b"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if r.Worst() != Critical || (&Report{}).Worst() != Info {
		t.Errorf("worst: %v; of nothing: %v", r.Worst(), (&Report{}).Worst())
	}
}

func TestReportAsJSON(t *testing.T) {
	r := Report{Version: ReportVersion, Results: []Result{
		{Check: "a", Findings: []Finding{{ID: "a.x", Severity: Warning, Confidence: Likely, Title: "t", Evidence: []Evidence{{"n", "v", "s"}}}}, Data: &ClocksourceData{}},
		{Check: "b", Err: errors.ErrUnsupported, Took: time.Second},
		{Check: "c", Err: fs.ErrPermission, Data: &ClocksourceData{}},
		{Check: "d", Err: fs.ErrPermission},
	}}
	b, err := json.Marshal(&r)
	if err != nil {
		t.Fatal(err)
	}
	var form struct {
		Results []struct {
			Status   Status
			Error    string
			Took     int64 `json:"took_ns"`
			Findings []Finding
		}
	}
	if err := json.Unmarshal(b, &form); err != nil {
		t.Fatal(err)
	}
	var status []Status
	for _, r := range form.Results {
		status = append(status, r.Status)
	}
	if want := []Status{Measured, Unsupported, Partial, Unknown}; !slices.Equal(status, want) {
		t.Errorf("status %v, want %v", status, want)
	}
	if f := form.Results[0].Findings; len(f) != 1 || f[0].Severity != Warning || f[0].Confidence != Likely {
		t.Errorf("finding came back as %+v", f)
	}
	if form.Results[1].Took != int64(time.Second) || form.Results[1].Error == "" || bytes.Contains(b, []byte(`"findings":null`)) {
		t.Errorf("form: %s", b)
	}
	if _, err := json.Marshal(Finding{Severity: 9}); err == nil {
		t.Error("a severity that does not exist is written")
	}
	if err := new(Confidence).UnmarshalText([]byte("sure")); err == nil {
		t.Error("a confidence that does not exist is read")
	}
}

func TestUnsupportedElsewhere(t *testing.T) {
	if runtime.GOOS == "linux" {
		t.Skip("this is Linux")
	}
	report, err := Run(context.Background(), Options{Checks: []string{"clocksource"}})
	if err != nil || report.Results[0].Status() != Unsupported {
		t.Errorf("error %v, results %+v", err, report.Results)
	}
}
