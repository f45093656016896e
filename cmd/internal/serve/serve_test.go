package serve

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/detent-go/detent/cmd/internal/browsertest"
	"github.com/detent-go/detent/probe"
)

// running is a server on a port of its own.
type running struct {
	*Server
	url string
	// show is what a watcher of processes does.
	show func([]Process, []probe.Finding)
	end  func() error
}

// start starts a server that probes with made-up results, so that the machine's load
// does not matter, and ends with the test.
func start(t *testing.T) *running {
	t.Helper()
	r := &running{}
	watching := make(chan struct{})
	o := Options{
		Every: time.Hour, Log: slog.New(slog.DiscardHandler),
		Watch: func(ctx context.Context, _ func() *probe.Report, show func([]Process, []probe.Finding)) error {
			r.show = show
			close(watching)
			<-ctx.Done()
			return nil
		},
	}
	r.Server = New(o)
	r.prober.probe = func(context.Context, probe.Options) (*probe.Report, error) { return report(), nil }
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.url = "http://" + l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Serve(ctx, l) }()
	r.end = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() {
		if err := r.end(); err != nil {
			t.Error(err)
		}
	})
	<-watching
	return r
}

func report() *probe.Report {
	call := probe.Cost{Least: 170}
	return &probe.Report{
		Started: time.Now(), Took: time.Second, Machine: probe.Machine{OS: "linux", CPU: "Some CPU", CPUs: 2},
		Results: []probe.Result{
			{Check: "clocks", Data: &probe.ClocksData{Clocks: []probe.ClockCost{
				{Package: "time", Name: "Now", How: "runtime", Cost: probe.Cost{Least: 40, Typical: 42}},
				{Package: "clock", Name: "Mono", How: "vDSO", Cost: probe.Cost{Least: 20, Typical: 21}, Syscall: &call},
			}}},
			{Check: "counter", Data: &probe.CounterData{CPUs: []probe.Place{{CPU: 0}, {CPU: 1}}, Pairs: []probe.PairOffset{{From: 0, To: 1, Low: -50, High: 50}}}},
			{Check: "kmsg", Data: 1, Err: errors.New("permission denied (run as root)")},
		},
	}
}

var sickProcess = []probe.Finding{{
	ID: "process.no-vdso", Severity: probe.Critical, Confidence: probe.Certain, Title: `process <b>"patient"</b> reads the clock by system calls`,
	Evidence: []probe.Evidence{{Name: "calls", Value: "100000/s", Source: "trace"}}, Remedy: []string{"restart it"},
}}

func (r *running) get(t *testing.T, path string) (int, string) {
	t.Helper()
	res, err := http.Get(r.url + path)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

// eventually waits for what comes sooner or later, however busy the machine is.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for range 3000 {
		if holds() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("never: %s", what)
}

func (r *running) probed(t *testing.T) {
	t.Helper()
	eventually(t, "a probe", func() bool { return r.board.latest() != nil })
}

func TestEndpoints(t *testing.T) {
	r := start(t)
	r.probed(t)
	r.show([]Process{{PID: 7, Name: "patient", ClockCalls: 1e5}}, sickProcess)
	for path, want := range map[string]string{
		"/healthz":    "ok",
		"/metrics":    `detent_probe_severity 0`,
		"/api/report": `"schema": "detent.doctor/1"`,
		"/api":        `"/api/report":`,
		"/api/state":  `"pid":7`,
		"/":           "Some CPU",
	} {
		if code, body := r.get(t, path); code != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: %d without %q: %.300s", path, code, want, body)
		}
	}
	if code, _ := r.get(t, "/etc/passwd"); code != http.StatusNotFound {
		t.Errorf("another path: %d", code)
	}
	res, err := http.Post(r.url+"/api/state", "text/plain", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", res.StatusCode)
	}
	var s State
	_, body := r.get(t, "/api/state")
	if err := json.Unmarshal([]byte(body), &s); err != nil || s.Severity != probe.Critical || len(s.Findings) != 1 || len(s.Unseen) != 1 || !strings.Contains(s.Verdict, "1 critical fault") {
		t.Errorf("%v: %s", err, body)
	}
	r.show(nil, nil)
	if s, _ := r.board.read(); s.Severity != probe.Info || len(s.Findings) != 0 {
		t.Errorf("the finding has not gone with its process: %+v", s.Findings)
	}
	eventually(t, "the counter's clock has stated a frequency or why it is not trusted", func() bool {
		h := r.sampler.tsc.Health()
		return h.Frequency > 0 || h.Err != nil
	})
	_, body = r.get(t, "/metrics")
	if !strings.Contains(body, `detent_sleep_lateness_seconds_count{way="time.Sleep"}`) || !strings.Contains(body, "detent_timer_fired_total") {
		t.Error("metrics are missing")
	}
}

// TestNames: over the loopback interface only the host's own names are answered to.
func TestNames(t *testing.T) {
	r := start(t)
	for host, want := range map[string]int{
		"127.0.0.1:1": 200, "localhost": 200, "LOCALHOST:80": 200, "[::1]:9": 200, "::1": 200,
		"rebound.example.com": 421, "example.com:9775": 421, "127.0.0.1.example.com": 421,
	} {
		req, err := http.NewRequest("GET", r.url+"/healthz", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("%s: %d, want %d", host, res.StatusCode, want)
		}
	}
}

// TestSlowClients: those that take nothing, and more than are served, hold up nobody.
func TestSlowClients(t *testing.T) {
	r := start(t)
	r.probed(t)
	var idle []net.Conn
	defer func() {
		for _, c := range idle {
			c.Close()
		}
	}()
	open := func() {
		c, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		idle = append(idle, c)
		fmt.Fprintf(c, "GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n") // and reads nothing
	}
	stream := func() int {
		res, err := http.Get(r.url + "/api/events")
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		return res.StatusCode
	}
	for range maxClients {
		open()
	}
	eventually(t, "too many", func() bool {
		if stream() == http.StatusServiceUnavailable {
			return true
		}
		open() // A machine that stands still has lost some.
		return false
	})
	for range 1000 {
		r.show([]Process{{PID: 1, Name: strings.Repeat("x", 4096)}}, nil)
	}
	if code, _ := r.get(t, "/api/state"); code != http.StatusOK {
		t.Errorf("others are not served: %d", code)
	}
	for _, c := range idle {
		c.Close()
	}
	eventually(t, "room again", func() bool { return stream() == http.StatusOK })
}

// TestStream: a client gets the state now, and again when it has changed.
func TestStream(t *testing.T) {
	r := start(t)
	res, err := http.Get(r.url + "/api/events")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	serial := uint64(0)
	r.show([]Process{{PID: 4711, Name: "new"}}, nil)
	for lines.Scan() {
		text, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var s State
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			t.Fatal(err)
		}
		if s.Serial <= serial {
			t.Errorf("state %d after %d", s.Serial, serial)
		}
		if serial = s.Serial; len(s.Processes) == 1 && s.Processes[0].PID == 4711 {
			return
		}
	}
	t.Errorf("the stream has ended: %v", lines.Err())
}

// TestEnd: when the server is told to end it does, with clients connected, and
// leaves no goroutine.
func TestEnd(t *testing.T) {
	before := runtime.NumGoroutine()
	r := start(t)
	transport := &http.Transport{}
	client := &http.Client{Transport: transport}
	res, err := client.Get(r.url + "/api/events")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.end(); err != nil {
		t.Error(err)
	}
	if _, err := io.Copy(io.Discard, res.Body); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the stream: %v", err)
	}
	res.Body.Close()
	transport.CloseIdleConnections()
	http.DefaultClient.CloseIdleConnections()
	// The default service keeps what it has started.
	eventually(t, "no goroutine left", func() bool { return runtime.NumGoroutine() <= before+4 })
}

// TestHealth: a server that measures nothing says so.
func TestHealth(t *testing.T) {
	s := New(Options{Every: time.Hour, Log: slog.New(slog.DiscardHandler)})
	s.board.update(func(*State) {})
	s.board.mu.Lock()
	s.board.state.Time = time.Now().Add(-2 * time.Minute)
	s.board.mu.Unlock()
	w := newRecorder()
	s.health(w, nil)
	if w.code != http.StatusServiceUnavailable {
		t.Errorf("status %d", w.code)
	}
}

type recorder struct {
	http.ResponseWriter
	header http.Header
	code   int
}

func newRecorder() *recorder                    { return &recorder{header: http.Header{}, code: 200} }
func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(code int)        { r.code = code }
func (r *recorder) Write(p []byte) (int, error) { return len(p), nil }

// TestProberKeepsWhole: looking at files alone renews their results and loses none.
func TestMerge(t *testing.T) {
	old := report()
	fresh := merge(old, &probe.Report{Results: []probe.Result{{Check: "kmsg"}}})
	if len(fresh.Results) != len(old.Results) || fresh.Results[2].Err != nil || fresh.Results[0].Data != old.Results[0].Data {
		t.Errorf("%+v", fresh.Results)
	}
	if old.Results[2].Err == nil {
		t.Error("the old report has been changed")
	}
	if first := merge(nil, old); first != old {
		t.Error("the first report is not taken as it is")
	}
}

func TestSummarize(t *testing.T) {
	if s := summarize("x", nil, 0); s.Count != 0 || len(s.Counts) != len(SleepBounds)+1 {
		t.Errorf("of nothing: %+v", s)
	}
	s := summarize("x", []time.Duration{time.Second, 5_000, 5_001, 0}, 7)
	if s.P50 != 5_000 || s.Max != time.Second || s.Counts[0] != 2 || s.Counts[1] != 1 || s.Counts[len(SleepBounds)] != 1 || s.Last != 7 {
		t.Errorf("%+v", s)
	}
}

// TestPage: in a real browser numbers move, a finding appears when there is one and
// goes with it, and nothing is complained of.
func TestPage(t *testing.T) {
	for name, size := range map[string][2]int{"laptop": {1280, 900}, "phone": {390, 844}} {
		t.Run(name, func(t *testing.T) {
			tab := browsertest.Open(t, size[0], size[1])
			r := start(t)
			r.probed(t)
			tab.Run(chromedp.Navigate(r.url))
			tab.Until("the stream is there", `document.getElementById('link').textContent === 'live'`)
			for _, id := range []string{"clocks", "offsets", "moving", "lateness"} {
				tab.Until(id+" is drawn", `document.querySelectorAll('#`+id+` svg path').length > 2`)
			}
			var first string
			tab.Eval(`document.getElementById('sleeps').tBodies[0].textContent`, &first)
			tab.Until("numbers move", `document.getElementById('sleeps').tBodies[0].textContent !== `+quote(first))
			r.show([]Process{{PID: 4711, Name: "<i>patient</i>", ClockCalls: 1e5, Late: time.Millisecond}}, sickProcess)
			tab.Until("the finding appears", `document.querySelector('.finding.critical[data-id="process.no-vdso"]') !== null`)
			tab.Until("the process appears", `document.getElementById('processes').textContent.includes('<i>patient</i>')`)
			var wide, markup bool
			tab.Eval(`document.documentElement.scrollWidth > innerWidth`, &wide)
			tab.Eval(`document.querySelector('#processes i, .finding b') !== null`, &markup)
			if wide {
				t.Error("the page is wider than the window")
			}
			if markup {
				t.Error("a process's name has become markup")
			}
			tab.Shoot("serve-" + name)
			tab.Dark(true)
			tab.Shoot("serve-" + name + "-dark")
			r.show(nil, nil)
			tab.Until("the finding goes", `document.querySelector('.finding.critical') === null`)
			if p := tab.Problems(); len(p) > 0 {
				t.Errorf("the console complains: %q", p)
			}
			if err := r.end(); err != nil {
				t.Error(err)
			}
			tab.Until("the page says that the server has gone", `document.getElementById('link').textContent === 'connection lost'`)
		})
	}
}

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}
