package labreport

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/detent-go/detent/cmd/internal/browsertest"
	"github.com/detent-go/detent/cmd/internal/machine"
	"github.com/detent-go/detent/lab"
)

var update = flag.Bool("update", false, "write the golden files")

func is(v float64) *float64 { return &v }

const evil = `<script>throw "evil"</script>|`

// fixed is a report with one of everything, and text that would break out of a page
// or a table if it could.
func fixed() Report {
	engines := &lab.Result{
		Name: "wheel", Title: "A wheel against the standard timer", About: "Nanoseconds to start a timer and stop it.",
		Took: 12340 * time.Millisecond, Skipped: []string{"heap1: not on this system", "peer: " + evil},
		Plots: []lab.Plot{{
			ID: "wheel", Title: "Start and stop", Kind: lab.Bars, Unit: lab.Nanoseconds, Labels: []string{"wheel, 1000 pending", "std, 1000 pending " + evil},
			Series: []lab.Series{{Name: "here", Values: []float64{100, 250}}, {Name: "published", Values: []float64{254, 0}}},
		}},
	}
	for i, who := range []string{"wheel", "std"} {
		for j, in := range []string{"1000 pending", "2000 pending"} {
			f := lab.Figure{What: "start and stop", Who: who, Case: in, Unit: lab.Nanoseconds, Here: is(float64(100 + 150*i + 10*j))}
			if i == 0 {
				f.Published = is(254)
			}
			engines.Figures = append(engines.Figures, f)
			engines.Figures = append(engines.Figures, lab.Figure{What: "bytes", Who: who, Case: in, Unit: lab.Bytes, Here: is(float64(80 * i))})
		}
	}
	clocks := &lab.Result{
		Name: "clocks", Title: "What reading a clock costs", About: "The least of many rounds.", Took: 3 * time.Second,
		Plots: []lab.Plot{{
			ID: "calls", Title: "System calls", Kind: lab.Bars, Unit: lab.Count, Labels: []string{"std", "detent"},
			Series: []lab.Series{{Name: "futex", Values: []float64{120000, 20}}, {Name: "write", Values: []float64{0, 3}}},
		}},
		Figures: []lab.Figure{
			{What: "reading", Who: "time.Now", Case: "one thread", Unit: lab.Nanoseconds, Here: is(40.21), Published: is(23), By: "the article"},
			{What: "system call", Who: "time.Now", Case: "one thread", Unit: lab.Nanoseconds, Here: is(166)},
			{What: "reading", Who: "clock.Mono", Case: "one thread", Unit: lab.Nanoseconds, Here: is(21.9), Published: is(25)},
			{What: "reading", Who: "clock.TSC", Case: "one thread", Unit: lab.Nanoseconds, Published: is(1.2)},
		},
	}
	late := &lab.Result{
		Name: "lateness", Title: "Lateness by load", About: "Timers of 1 ms.", Took: time.Second,
		Figures: []lab.Figure{{What: "frequency", Who: "counter", Case: "during the run", Unit: "Hz", Here: is(2.5e9)},
			{What: "sleeps a second", Who: "monitor", Case: "idle", Unit: lab.PerSecond, Here: is(50)}},
		Plots: []lab.Plot{
			{ID: "lateness", Title: "p50 of lateness", Kind: lab.Heat, Unit: lab.Nanoseconds, Labels: []string{"std", "lane"}, Columns: []string{"idle", "spinning"},
				Series: []lab.Series{{Name: "std", Values: []float64{1e6, 2e7}}, {Name: "lane", Values: []float64{0, 3e4}}}},
			{ID: "tails", Title: "Tails", Kind: lab.Tails, Unit: lab.Nanoseconds, Series: []lab.Series{
				{Name: "std", Points: [][2]float64{{1000, 100}, {2e6, 1}}}, {Name: "lane", Points: [][2]float64{{500, 100}, {3e4, 1}}}}},
		},
	}
	failed := &lab.Result{Name: "monitor", Title: "How often the monitor wakes up", About: "Its sleeps.", Took: time.Millisecond, Failed: "no tracepoints"}
	return Report{
		Machine: machine.Info{CPUModel: "CPU <b>", CPUs: 4, OS: "linux", Arch: "amd64", Kernel: "Linux 6.1", Clocksource: "tsc", Go: "go1.26", GOMAXPROCS: 4, Waker: "timerfd"},
		Report: &lab.Report{
			Schema: lab.Schema, Made: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Took: 75 * time.Second, Short: true, Stopped: "interrupted",
			Results: []*lab.Result{engines, clocks, late, failed},
			Claims: []lab.Claim{
				{ID: "C1", Says: "time.Now steps backward", Verdict: lab.Refuted, Because: "0 of 1000 readings"},
				{ID: "C2", Says: "counters differ", Verdict: lab.NotTestable, Because: "needs two NUMA nodes"},
				{ID: "K1", Says: "more switches", Verdict: lab.NotRun, Because: `needs the experiment "syscalls"`},
				{ID: "K2", Says: "a wheel is faster " + evil, Verdict: lab.Confirmed, Because: "wheel 100 ns, std 250 ns"},
			},
		},
	}
}

// TestGroups: things that there is one case of make one table, also beside others that
// there are more cases of.
func TestGroups(t *testing.T) {
	figure := func(what, who, in string) lab.Figure { return lab.Figure{What: what, Who: who, Case: in, Here: is(1)} }
	var list []lab.Figure
	for _, who := range []string{"std", "detent"} {
		list = append(list, figure("futex", who, "50 groups"), figure("epoll", who, "50 groups"), figure("p50", who, "idle"), figure("p50", who, "busy"))
	}
	list = append(list, figure("ratio", "std / detent", "round by round"))
	var got []string
	for _, one := range tables(&lab.Result{Figures: list}) {
		got = append(got, one.title+": "+strings.Join(one.head, " "))
	}
	want := []string{"50 groups:  futex epoll", "p50:  idle busy", "Measured:  of  here"}
	if !slices.Equal(got, want) {
		t.Errorf("tables %q, want %q", got, want)
	}
}

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

func TestText(t *testing.T) {
	var b bytes.Buffer
	if err := fixed().WriteText(&b, 80, false); err != nil {
		t.Fatal(err)
	}
	golden(t, "lab.txt", b.Bytes())
	if bytes.Contains(b.Bytes(), []byte("\x1b[")) {
		t.Error("colours where none are wanted")
	}
}

func TestMarkdown(t *testing.T) {
	var b bytes.Buffer
	if err := fixed().WriteMarkdown(&b); err != nil {
		t.Fatal(err)
	}
	golden(t, "lab.md", b.Bytes())
}

// TestJSON: it is the lab's own report.
func TestJSON(t *testing.T) {
	var b bytes.Buffer
	r := fixed()
	if err := r.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	var back lab.Report
	if err := json.Unmarshal(b.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(&back)
	want, _ := json.Marshal(r.Report)
	if err != nil || !bytes.Equal(again, want) {
		t.Errorf("%s\nis not\n%s", again, want)
	}
}

func TestFormat(t *testing.T) {
	for _, c := range []struct {
		v    float64
		unit lab.Unit
		want string
	}{
		{0, lab.Nanoseconds, "0 ns"}, {1.234, lab.Nanoseconds, "1.23 ns"}, {12.34, lab.Nanoseconds, "12.3 ns"}, {999.4, lab.Nanoseconds, "999 ns"},
		{999.6, lab.Nanoseconds, "1.00 µs"}, {-1500, lab.Nanoseconds, "-1.50 µs"}, {1e6, lab.Nanoseconds, "1 ms"}, {7.2e12, lab.Nanoseconds, "7200 s"},
		{2.5e9, "Hz", "2.50 GHz"}, {80, lab.Bytes, "80 B"}, {1_000_000, lab.Count, "1000000"}, {50, lab.PerSecond, "50/s"}, {0.5, lab.Percent, "0.50 %"},
	} {
		if got := value(&c.v, c.unit); got != c.want {
			t.Errorf("%v %s: %q, want %q", c.v, c.unit, got, c.want)
		}
	}
	for _, c := range []struct {
		here, published *float64
		want            string
	}{{is(50), is(100), "0.50×"}, {is(1), is(250), "1/250"}, {is(0), is(10), "0×"}, {is(1), is(0), ""}, {nil, is(1), ""}, {is(1), nil, ""}} {
		if got := ratio(c.here, c.published); got != c.want {
			t.Errorf("ratio %q, want %q", got, c.want)
		}
	}
}

// TestHTML has a browser draw the page.
func TestHTML(t *testing.T) {
	var b bytes.Buffer
	if err := fixed().WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(b.Bytes(), []byte("<script>throw")) || bytes.Contains(b.Bytes(), []byte("CPU <b>")) {
		t.Error("text breaks out of the page")
	}
	for _, want := range []string{"1 confirmed, 1 refuted", "needs two NUMA nodes", "(interrupted)", "no tracepoints", "heap1: not on this system", "254 ns", "0.39×"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in the page", want)
		}
	}
	draw(t, b.Bytes(), "lab", []string{"wheel", "calls", "lateness", "tails"})
}

// TestRealHTML draws a page of a run that the environment names, as JSON.
func TestRealHTML(t *testing.T) {
	file := os.Getenv("DETENT_LAB_JSON")
	if file == "" {
		t.Skip("DETENT_LAB_JSON names no run")
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var run lab.Report
	if err := json.Unmarshal(data, &run); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := (Report{machine.Read(), &run}).WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	var plots []string
	for _, x := range run.Results {
		for _, p := range x.Plots {
			plots = append(plots, p.ID)
		}
	}
	draw(t, b.Bytes(), "lab-real", plots)
}

func draw(t *testing.T, html []byte, name string, plots []string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(file, html, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, screen := range []struct {
		name          string
		width, height int
	}{{name, 1100, 900}, {name + "-phone", 390, 844}} {
		drawOn(t, browsertest.Open(t, screen.width, screen.height), file, screen.name, plots)
	}
}

func drawOn(t *testing.T, tab *browsertest.Tab, file, name string, plots []string) {
	t.Helper()
	tab.Run(chromedp.Navigate("file://" + file))
	for _, id := range plots {
		tab.Until("the plot "+id+" is drawn", `document.getElementById("plot-`+id+`").querySelectorAll("svg path").length > 3`)
	}
	var overflow bool
	tab.Eval(`document.documentElement.scrollWidth > innerWidth`, &overflow)
	if overflow {
		t.Errorf("%s: the page is wider than the window", name)
	}
	tab.Shoot(name)
	if p := tab.Problems(); len(p) > 0 {
		t.Errorf("%s: the console complains: %q", name, p)
	}
}

// TestCommand: the page shows the command that makes it, with what it was asked for.
func TestCommand(t *testing.T) {
	for want, r := range map[string]Report{
		"go run ./cmd/detent lab all --markdown > docs/lab.md":                              {Report: &lab.Report{}},
		"go run ./cmd/detent lab all --short --markdown > docs/lab.md":                      {Report: &lab.Report{Short: true}},
		"go run ./cmd/detent lab all --short --switch-clocksource --markdown > docs/lab.md": {Report: &lab.Report{Short: true, Switch: true}},
	} {
		if got := r.command(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
