package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/detent-go/detent/probe"
)

// TestFleet: a real Prometheus scrapes detent serve and simulated hosts. The alerts
// fire for those that something is wrong with, and for no other; and each query of
// the dashboard has an answer.
func TestFleet(t *testing.T) {
	program(t, "prometheus")
	noVDSO := probe.Finding{ID: "clocksource.no-vdso", Severity: probe.Critical, Confidence: probe.Certain}
	hosts := []host{
		{name: "healthy-1", clocksource: "tsc"},
		{name: "healthy-2", clocksource: "tsc"},
		{name: "healthy-3", clocksource: "kvm-clock"},
		{name: "slow", clocksource: "hpet", findings: []probe.Finding{noVDSO}},
		{name: "backward", clocksource: "tsc", findings: []probe.Finding{{ID: "steps.back", Severity: probe.Critical, Confidence: probe.Certain}}},
		{name: "bypassing", clocksource: "tsc", bypass: 500_000},
		{name: "gone", clocksource: "tsc"},
	}
	targets, goes := map[string]string{"real": startServe(t)}, func() {}
	for _, h := range hosts {
		var stop func()
		targets[h.name], stop = h.serve(t)
		if h.name == "gone" {
			goes = stop
		}
	}
	servers := map[string]*server{
		"classic histograms": startPrometheus(t, targets),
		"native histograms":  startPrometheus(t, targets, "--enable-feature=native-histograms"),
	}
	for _, p := range servers {
		eventually(t, func() string {
			if n := len(p.must(t, `up{job="detent"} == 1`)); n != len(targets) {
				return fmt.Sprintf("%d of %d hosts answer", n, len(targets))
			}
			return ""
		})
	}
	goes()
	for name, p := range servers {
		t.Run(name, func(t *testing.T) {
			t.Run("alerts", func(t *testing.T) {
				p.fires(t, "DetentClocksourceWithoutVDSO", "slow", `severity="critical", clocksource="hpet"`)
				p.fires(t, "DetentCriticalFinding", "backward", `severity="critical", id="steps.back"`)
				p.fires(t, "DetentVDSOBypassed", "bypassing", `reason="direct-call"`)
				p.fires(t, "DetentProcessFinding", "bypassing", `id="explain.direct-calls"`)
				p.fires(t, "DetentDown", "gone", `severity="warning"`)
			})
			t.Run("dashboard", func(t *testing.T) { testDashboard(t, p) })
			t.Run("healthy", func(t *testing.T) { testHealthy(t, p) })
		})
	}
	if n := len(servers["native histograms"].must(t, `detent_sleep_lateness_seconds_bucket`)); n > 0 {
		t.Errorf("native histograms are not stored, but %d buckets", n)
	}
}

// fires waits until an alert does.
func (s *server) fires(t *testing.T, name, instance, labels string) {
	t.Helper()
	expr := fmt.Sprintf(`ALERTS{alertstate="firing", alertname=%q, instance=%q, %s}`, name, instance, labels)
	eventually(t, func() string {
		if len(s.must(t, expr)) == 0 {
			return expr
		}
		return ""
	})
}

// testHealthy: nothing is wrong with the healthy hosts, nor ever was: all that has
// been pending counts. A scrape may be missed by a machine that is too busy: that is
// the one alert which says nothing of the host.
func testHealthy(t *testing.T, p *server) {
	for _, a := range p.must(t, `count_over_time(ALERTS{instance=~"healthy-.*", alertname!="DetentDown"}[1h])`) {
		t.Errorf("%v", a.Metric)
	}
	for _, a := range p.must(t, `count_over_time(ALERTS{alertname="DetentClocksourceWithoutVDSO", instance!="slow"}[1h])`) {
		if a.Metric["instance"] != "real" || !p.ownFault(t) {
			t.Errorf("%v", a.Metric)
		}
	}
}

// ownFault reports whether this machine is itself on a clocksource without vDSO.
func (s *server) ownFault(t *testing.T) bool {
	t.Helper()
	return len(s.must(t, `count_over_time(detent_probe_finding{instance="real", id="clocksource.no-vdso"}[1h])`)) > 0
}

// panel is what the test reads of a dashboard's.
type panel struct {
	ID      int
	Type    string
	Title   string
	GridPos struct{ H, W, X, Y int }
	Targets []struct{ RefID, Expr, Format string }
}

type dashboard struct {
	UID, Title    string
	SchemaVersion int
	Panels        []panel
	Templating    struct {
		List []struct {
			Name, Type string
			Query      any
		}
	}
}

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	if err := json.Unmarshal([]byte(read(t, deploy("grafana/detent.json"))), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// TestDashboardFile: what Grafana would not say a word about, and show nothing.
func TestDashboardFile(t *testing.T) {
	d := readDashboard(t)
	if d.UID == "" || d.Title == "" || d.SchemaVersion < 36 {
		t.Errorf("uid %q, title %q, schema %d", d.UID, d.Title, d.SchemaVersion)
	}
	text, ids := read(t, deploy("grafana/detent.json")), map[int]bool{}
	for _, v := range d.Templating.List {
		if !strings.Contains(text, "$"+v.Name) && !strings.Contains(text, "${"+v.Name+"}") {
			t.Errorf("the variable %s is used nowhere", v.Name)
		}
	}
	var taken [][4]int
	for _, p := range d.Panels {
		if ids[p.ID] {
			t.Errorf("panel %d twice", p.ID)
		}
		ids[p.ID] = true
		g := p.GridPos
		if g.X+g.W > 24 {
			t.Errorf("%s is wider than the page", p.Title)
		}
		for _, o := range taken {
			if g.X < o[0]+o[2] && o[0] < g.X+g.W && g.Y < o[1]+o[3] && o[1] < g.Y+g.H {
				t.Errorf("%s lies over another panel", p.Title)
			}
		}
		taken = append(taken, [4]int{g.X, g.Y, g.W, g.H})
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("%s asks for nothing", p.Title)
		}
	}
}

// testDashboard runs every query, as Grafana would with its variables filled in.
func testDashboard(t *testing.T, p *server) {
	fill := strings.NewReplacer("$__rate_interval", "1m", "$instance", ".+", "$way", "timer.Sleep")
	for _, panel := range readDashboard(t).Panels {
		for _, target := range panel.Targets {
			expr := fill.Replace(target.Expr)
			if strings.Contains(expr, "$") {
				t.Errorf("%s: an unknown variable in %s", panel.Title, expr)
				continue
			}
			if _, err := p.query(t, expr); err != nil {
				t.Errorf("%s: %v", panel.Title, err)
				continue
			}
			eventually(t, func() string {
				for _, s := range p.must(t, expr) {
					if !math.IsNaN(s.float()) {
						return ""
					}
				}
				return fmt.Sprintf("data for the panel %q: %s", panel.Title, expr)
			})
		}
	}
}

// TestUnitSuffices starts detent serve as the service unit does, as a user without any
// powers but the unit's capabilities: it watches processes as root does.
func TestUnitSuffices(t *testing.T) {
	setpriv := program(t, "setpriv")
	if os.Geteuid() != 0 {
		t.Skip("only root gives capabilities")
	}
	if why := watching(t, startServe(t)); why != "" {
		t.Skipf("root does not watch processes here either: %s", why)
	}
	caps := "-all"
	for _, c := range unit(t, "AmbientCapabilities") {
		caps += ",+" + strings.ToLower(strings.TrimPrefix(c, "CAP_"))
	}
	why := watching(t, startServe(t, setpriv, "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs",
		"--inh-caps="+caps, "--ambient-caps="+caps, "--bounding-set="+caps))
	if why != "" {
		t.Errorf("with the unit's capabilities: %s", why)
	}
}

// watching waits until detent serve has begun to watch processes, or says why not.
func watching(t *testing.T, address string) (why string) {
	t.Helper()
	eventually(t, func() string {
		st, metrics, err := look(address)
		switch {
		case err != nil:
			return err.Error()
		case st.Watching != "":
			why = st.Watching
			return ""
		case strings.Contains(metrics, "\ndetent_trace_hook_seconds_total{"):
			return ""
		}
		return "hooks"
	})
	return why
}

func look(address string) (st struct{ Watching string }, metrics string, err error) {
	body, err := get(address, "/api/state")
	if err != nil {
		return st, "", err
	}
	metrics, err2 := get(address, "/metrics")
	return st, metrics, errors.Join(json.Unmarshal([]byte(body), &st), err2)
}

func get(address, path string) (string, error) {
	res, err := http.Get("http://" + address + path)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	var b strings.Builder
	if _, err := io.Copy(&b, res.Body); err != nil {
		return "", err
	}
	if res.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s", path, res.Status)
	}
	return b.String(), nil
}
