package fleet

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// deploy is a file's path.
func deploy(name string) string {
	return filepath.Join("..", "..", "..", "deploy", filepath.FromSlash(name))
}

func read(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// program finds a program, or skips the test.
func program(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed", name)
	}
	return path
}

// check runs a program that has to be content.
func check(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(program(t, name), args...).CombinedOutput(); err != nil {
		t.Errorf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

func TestRules(t *testing.T) {
	check(t, "promtool", "check", "rules", deploy("prometheus/detent.rules.yml"))
	check(t, "promtool", "test", "rules", deploy("prometheus/detent.rules.test.yml"))
}

func TestScrapeConfig(t *testing.T) {
	check(t, "promtool", "check", "config", deploy("prometheus/prometheus.example.yml"))
}

func TestAlertmanagerConfig(t *testing.T) {
	check(t, "amtool", "check-config", deploy("alertmanager/alertmanager.example.yml"))
}

// ruleFile is what the tests read of a file of rules.
type ruleFile struct {
	Groups []struct {
		Name  string
		Rules []rule
	}
}

type rule struct {
	Record, Alert, Expr string
	Labels, Annotations map[string]string
}

func alerts(t *testing.T) (list []rule) {
	t.Helper()
	var f ruleFile
	if err := yaml.Unmarshal([]byte(read(t, deploy("prometheus/detent.rules.yml"))), &f); err != nil {
		t.Fatal(err)
	}
	for _, g := range f.Groups {
		for _, r := range g.Rules {
			if r.Alert != "" {
				list = append(list, r)
			}
		}
	}
	if len(list) == 0 {
		t.Fatal("no alerts")
	}
	return list
}

// TestAlertsDocumented: each alert has a severity that the routes know, words, a unit
// test, a section in docs/fleet.md, and a link to a heading that there is.
func TestAlertsDocumented(t *testing.T) {
	docs := map[string]string{}
	for _, name := range []string{"explain.md", "fleet.md", "findings.md"} {
		docs[name] = read(t, filepath.Join("..", "..", "..", "docs", name))
	}
	tests := read(t, deploy("prometheus/detent.rules.test.yml"))
	link := regexp.MustCompile(`^https://github\.com/detent-go/detent/blob/main/docs/([a-z]+\.md)#(.+)$`)
	for _, a := range alerts(t) {
		if !slices.Contains([]string{"critical", "warning", "info"}, a.Labels["severity"]) {
			t.Errorf("%s: severity %q", a.Alert, a.Labels["severity"])
		}
		for _, name := range []string{"summary", "description"} {
			if a.Annotations[name] == "" {
				t.Errorf("%s has no %s", a.Alert, name)
			}
		}
		if !strings.Contains(docs["fleet.md"], "### "+a.Alert+"\n") {
			t.Errorf("docs/fleet.md does not say what to do about %s", a.Alert)
		}
		fires := regexp.MustCompile(`alertname: ` + a.Alert + `\n\s+exp_alerts:\n`)
		if !fires.MatchString(tests) {
			t.Errorf("no unit test sees %s fire", a.Alert)
		}
		m := link.FindStringSubmatch(a.Annotations["runbook_url"])
		if m == nil {
			t.Errorf("%s: runbook_url %q", a.Alert, a.Annotations["runbook_url"])
			continue
		}
		if !strings.Contains(m[2], "{{") && !slices.Contains(anchors(docs[m[1]]), m[2]) {
			t.Errorf("%s: %s has no heading #%s", a.Alert, m[1], m[2])
		}
	}
}

// TestLinks: links of docs/fleet.md to headings lead to some.
func TestLinks(t *testing.T) {
	page := func(name string) string { return read(t, filepath.Join("..", "..", "..", "docs", name)) }
	links := regexp.MustCompile(`\]\(([a-z]*\.?m?d?)#([^)]+)\)`).FindAllStringSubmatch(page("fleet.md"), -1)
	if len(links) == 0 {
		t.Fatal("no links")
	}
	for _, m := range links {
		name := m[1]
		if name == "" {
			name = "fleet.md"
		}
		if !slices.Contains(anchors(page(name)), m[2]) {
			t.Errorf("%s has no heading #%s", name, m[2])
		}
	}
}

// anchors are what GitHub calls the headings of a page.
func anchors(page string) (list []string) {
	for _, m := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(page, -1) {
		name := regexp.MustCompile(`[^\pL\pN _-]`).ReplaceAllString(strings.ToLower(m[1]), "")
		list = append(list, strings.ReplaceAll(name, " ", "-"))
	}
	return list
}

// TestFindingsNamed: the findings that rules name are documented ones.
func TestFindingsNamed(t *testing.T) {
	var pages string
	for _, name := range []string{"explain.md", "findings.md"} {
		pages += read(t, filepath.Join("..", "..", "..", "docs", name))
	}
	ids := regexp.MustCompile(`\bid!?="([^"]+)"`).FindAllStringSubmatch(read(t, deploy("prometheus/detent.rules.yml")), -1)
	if len(ids) == 0 {
		t.Fatal("no rule names a finding")
	}
	for _, m := range ids {
		if !strings.Contains(pages, "### "+m[1]+"\n") {
			t.Errorf("nothing documents %s", m[1])
		}
	}
}

// capabilities that detent serve keeps, by the kernel's names without CAP_.
var capabilities = []string{"BPF", "DAC_READ_SEARCH", "PERFMON", "SYSLOG", "SYS_PTRACE"}

// unit returns the values of a setting of the service unit.
func unit(t *testing.T, setting string) []string {
	t.Helper()
	var values []string
	for _, m := range regexp.MustCompile(`(?m)^`+setting+`=(.*)$`).FindAllStringSubmatch(read(t, deploy("systemd/detent.service")), -1) {
		values = append(values, strings.Fields(m[1])...)
	}
	return values
}

func TestUnit(t *testing.T) {
	for _, setting := range []string{"AmbientCapabilities", "CapabilityBoundingSet"} {
		var got []string
		for _, c := range unit(t, setting) {
			got = append(got, strings.TrimPrefix(c, "CAP_"))
		}
		slices.Sort(got)
		if !slices.Equal(got, capabilities) {
			t.Errorf("%s is %v, want %v", setting, got, capabilities)
		}
	}
	analyze := program(t, "systemd-analyze")
	// The command is not installed here; what else is in the unit has to be right.
	path := filepath.Join(t.TempDir(), "detent.service")
	text := strings.ReplaceAll(read(t, deploy("systemd/detent.service")), "/usr/local/bin/detent", program(t, "true"))
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(analyze, "verify", "--man=no", path).CombinedOutput()
	for line := range strings.Lines(string(out)) {
		// Other units of the machine are looked at as well, and are not ours.
		if strings.Contains(line, "detent.service") {
			t.Errorf("systemd-analyze verify: %v: %s", err, line)
		}
	}
	// Exposure is in tenths: 0 is a service that can do nothing, 100 one without bounds.
	out, err = exec.Command(analyze, "security", "--offline=true", "--threshold=40", path).CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
	case errors.As(err, &exit) && bytes.Contains(out, []byte("Overall exposure")):
		t.Errorf("systemd-analyze security: %v\n%s", err, out)
	default:
		t.Logf("systemd-analyze security cannot say: %v\n%.300s", err, out)
	}
}

// manifest is the Kubernetes manifest's documents by kind.
func manifest(t *testing.T) map[string]map[string]any {
	t.Helper()
	kinds := map[string]map[string]any{}
	for d := yaml.NewDecoder(strings.NewReader(read(t, deploy("kubernetes/daemonset.yaml")))); ; {
		var doc map[string]any
		err := d.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return kinds
		}
		if err != nil {
			t.Fatal(err)
		}
		kinds[doc["kind"].(string)] = doc
	}
}

// at walks down a document; a number is an index.
func at(t *testing.T, v any, path ...any) any {
	t.Helper()
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[p]
		case int:
			l, _ := v.([]any)
			if p >= len(l) {
				t.Fatalf("%v: no %d", path, p)
			}
			v = l[p]
		}
	}
	return v
}

// TestDaemonSet: the pod has the privileges that it needs, and no others.
func TestDaemonSet(t *testing.T) {
	set := manifest(t)["DaemonSet"]
	pod := at(t, set, "spec", "template", "spec")
	container := at(t, pod, "containers", 0)
	for _, c := range []struct {
		of   any
		path []any
		want any
	}{
		{pod, []any{"hostPID"}, true},
		{pod, []any{"hostNetwork"}, nil},
		{pod, []any{"hostIPC"}, nil},
		{pod, []any{"volumes"}, nil},
		{pod, []any{"serviceAccountName"}, nil},
		{pod, []any{"automountServiceAccountToken"}, false},
		{pod, []any{"securityContext", "seccompProfile", "type"}, "RuntimeDefault"},
		{container, []any{"securityContext", "privileged"}, false},
		{container, []any{"securityContext", "allowPrivilegeEscalation"}, false},
		{container, []any{"securityContext", "readOnlyRootFilesystem"}, true},
		{container, []any{"securityContext", "capabilities", "drop"}, []any{"ALL"}},
		{container, []any{"resources", "limits", "cpu"}, nil},
		{container, []any{"startupProbe", "httpGet", "path"}, "/healthz"},
		{container, []any{"readinessProbe", "httpGet", "path"}, "/healthz"},
		{container, []any{"livenessProbe", "httpGet", "path"}, "/healthz"},
	} {
		if got := at(t, c.of, c.path...); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v is %v, want %v", c.path, got, c.want)
		}
	}
	var add []string
	for _, c := range at(t, container, "securityContext", "capabilities", "add").([]any) {
		add = append(add, c.(string))
	}
	slices.Sort(add)
	if !slices.Equal(add, capabilities) {
		t.Errorf("capabilities %v, want %v", add, capabilities)
	}
	selector, labels := at(t, set, "spec", "selector", "matchLabels"), at(t, set, "spec", "template", "metadata", "labels")
	if selector == nil || !reflect.DeepEqual(selector, labels) {
		t.Errorf("selector %v, labels %v", selector, labels)
	}
	if policy := manifest(t)["NetworkPolicy"]; !reflect.DeepEqual(at(t, policy, "spec", "podSelector", "matchLabels"), labels) {
		t.Error("the network policy is of other pods")
	}
}

// TestDaemonSetSchema lets kubectl decode the DaemonSet into Kubernetes's own types,
// which drops what they do not know: all that stands in it has to come out again.
func TestDaemonSetSchema(t *testing.T) {
	kubectl := program(t, "kubectl")
	set := manifest(t)["DaemonSet"]
	in, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(kubectl, "set", "env", "--local", "-f", "-", "-o", "json", "SEEN=1")
	cmd.Stdin = bytes.NewReader(in)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	var want, got any
	if err := errors.Join(json.Unmarshal(in, &want), json.Unmarshal(out, &got)); err != nil {
		t.Fatal(err)
	}
	for _, lost := range missing("", want, got) {
		t.Errorf("Kubernetes does not know %s", lost)
	}
}

// missing lists what is in want and not in got.
func missing(path string, want, got any) (lost []string) {
	switch w := want.(type) {
	case map[string]any:
		g, _ := got.(map[string]any)
		for k, v := range w {
			if v == nil || reflect.DeepEqual(v, []any{}) {
				continue
			}
			lost = append(lost, missing(path+"."+k, v, g[k])...)
		}
	case []any:
		g, _ := got.([]any)
		for i, v := range w {
			var x any
			if i < len(g) {
				x = g[i]
			}
			lost = append(lost, missing(fmt.Sprintf("%s[%d]", path, i), v, x)...)
		}
	default:
		if !reflect.DeepEqual(want, got) {
			lost = append(lost, fmt.Sprintf("%s: %v (%v)", path, want, got))
		}
	}
	return lost
}
