package fleet

import (
	"bufio"
	"log/slog"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/detent-go/detent/cmd/internal/serve"
	"github.com/detent-go/detent/probe"
	"github.com/detent-go/detent/prom"
)

// patience is for what comes sooner or later, however busy the machine is.
const patience = 4 * time.Minute

// eventually waits until what it asks for is there: "" then, or what is missing.
func eventually(t *testing.T, missing func() string) {
	t.Helper()
	var last string
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(300 * time.Millisecond) {
		if last = missing(); last == "" {
			return
		}
	}
	t.Fatalf("never: %s", last)
}

// start starts a process that ends with the test: asked to, and if it does not want
// to, killed. What it writes to its standard error goes to lines.
func start(t testing.TB, cmd *exec.Cmd, lines func(string)) {
	t.Helper()
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for s := bufio.NewScanner(stderr); s.Scan(); {
			lines(s.Text())
		}
		_ = cmd.Wait() // It is ended by a signal.
	}()
	t.Cleanup(func() {
		if cmd.Process.Signal(syscall.SIGTERM) != nil {
			_ = cmd.Process.Kill()
		}
		select {
		case <-ended:
		case <-time.After(time.Minute):
			_ = cmd.Process.Kill()
			<-ended
		}
	})
}

// build builds the command.
func build(t testing.TB) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("detent serve is watched on Linux")
	}
	dir := t.TempDir()
	// Others may have to execute it.
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "detent")
	if out, err := exec.Command(program(t, "go"), "build", "-buildvcs=false", "-o", path, "github.com/detent-go/detent/cmd/detent").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return path
}

// startServe starts detent serve, through a launcher if there is one, and returns its
// address, host:port.
func startServe(t testing.TB, launcher ...string) string {
	t.Helper()
	args := append(launcher, build(t), "serve", "--listen", "127.0.0.1:0")
	url, at := regexp.MustCompile(`url=http://([^/]+)/`), make(chan string, 1)
	start(t, exec.Command(args[0], args[1:]...), func(line string) {
		if m := url.FindStringSubmatch(line); m != nil {
			at <- m[1]
		}
	})
	select {
	case a := <-at:
		return a
	case <-time.After(patience):
		t.Fatal("detent serve does not say where it serves")
		return ""
	}
}

// host is a simulated one.
type host struct {
	name, clocksource string
	findings          []probe.Finding
	bypass            float64 // needless system calls a second
}

// serve answers scrapes as the host would, and returns its address. Names and labels
// are those of the real collectors.
func (h host) serve(t *testing.T) (address string, stop func()) {
	t.Helper()
	r := &probe.Report{
		Started: time.Now(), Took: 2 * time.Second,
		Results: []probe.Result{
			{Check: "clocksource", Data: &probe.ClocksourceData{Current: h.clocksource}, Findings: h.findings},
			{Check: "counter", Data: &probe.CounterData{Groups: []probe.OffsetGroup{{Relation: "cores of a node", Bound: 50}}}},
			{Check: "clocks", Data: &probe.ClocksData{Clocks: []probe.ClockCost{{Package: "time", Name: "Now", How: "runtime", Cost: probe.Cost{Least: 40}}}}},
		},
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(
		prom.NewProbeCollector(func() *probe.Report { return r }),
		&traced{watcher: serve.NewWatcher(slog.New(slog.DiscardHandler)), started: time.Now(), bypass: h.bypass},
	)
	server := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://"), server.Close
}

// traced counts what a watcher of processes would, at steady rates. A watcher knows
// the names; only one that is attached to a kernel has numbers.
type traced struct {
	watcher prometheus.Collector
	started time.Time
	bypass  float64
}

func (c *traced) Describe(ch chan<- *prometheus.Desc) { c.watcher.Describe(ch) }

// variable finds the name of a description's label, which client_golang tells nobody
// but readers of its text.
var variable = regexp.MustCompile(`fqName: "(\w+)".*variableLabels: \{(\w+)\}`)

func (c *traced) Collect(ch chan<- prometheus.Metric) {
	descs := make(chan *prometheus.Desc, 64)
	c.watcher.Describe(descs)
	close(descs)
	seconds := time.Since(c.started).Seconds()
	for d := range descs {
		if strings.Contains(d.String(), `"detent_process_findings"`) {
			if c.bypass > 0 {
				ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, 1, "explain.direct-calls", "critical")
			}
			continue
		}
		m := variable.FindStringSubmatch(d.String())
		if m == nil {
			panic("fleet: another number of labels than one: " + d.String())
		}
		var rates map[string]float64
		switch name, label := m[1], m[2]; {
		case strings.HasSuffix(name, "clock_calls_total"):
			rates = map[string]float64{"clock-not-on-vdso": 1000, "direct-call": c.bypass}
		case label == "part":
			rates = map[string]float64{"slack": 5e-3, "interrupt": 1e-3, "wake": 1e-3, "run queue": 20e-3, "throttled": 0}
		case label == "hook":
			rates = map[string]float64{"tp_btf/sys_enter": 2e-3}
		case label == "what":
			rates = map[string]float64{"stacks": 0}
		default:
			rates = map[string]float64{"futex": 400, "timerfd": 100}
		}
		for value, rate := range rates {
			ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, rate*seconds, value)
		}
	}
}
