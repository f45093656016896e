package fleet

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// server is a real Prometheus.
type server struct{ url string }

// startPrometheus starts one that scrapes targets, addresses by host's name, every
// other second, and that has the rules of deploy/; with more flags if there are any.
func startPrometheus(t *testing.T, targets map[string]string, flags ...string) *server {
	t.Helper()
	exe, dir := program(t, "prometheus"), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "rules.yml"), impatient(t), 0o644); err != nil {
		t.Fatal(err)
	}
	var hosts []any
	for name, address := range targets {
		hosts = append(hosts, map[string]any{"targets": []string{address}, "labels": map[string]string{"instance": name}})
	}
	config, err := yaml.Marshal(map[string]any{
		"global":         map[string]any{"scrape_interval": "2s", "scrape_timeout": "2s", "evaluation_interval": "1s"},
		"rule_files":     []string{"rules.yml"},
		"scrape_configs": []any{map[string]any{"job_name": "detent", "static_configs": hosts}},
	})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(path, config, 0o644); err != nil {
		t.Fatal(err)
	}
	// It cannot say which port it got. One that is free now may be taken by the time
	// that Prometheus asks for it: then there is another.
	for try := range 5 {
		address := freeAddress(t)
		var mu sync.Mutex
		var log strings.Builder
		ended := make(chan struct{})
		args := append([]string{
			"--config.file=" + path, "--storage.tsdb.path=" + filepath.Join(dir, "data"+strconv.Itoa(try)), "--web.listen-address=" + address,
		}, flags...)
		cmd := exec.Command(exe, args...)
		start(t, cmd, func(line string) {
			mu.Lock()
			defer mu.Unlock()
			fmt.Fprintln(&log, line)
			if strings.Contains(line, "address already in use") {
				close(ended)
			}
		})
		s := &server{"http://" + address}
		for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
			if res, err := http.Get(s.url + "/-/ready"); err == nil {
				res.Body.Close()
				if res.StatusCode == http.StatusOK {
					return s
				}
			}
			select {
			case <-ended:
			default:
				if time.Now().Before(end) {
					continue
				}
				mu.Lock()
				defer mu.Unlock()
				t.Fatalf("Prometheus is not ready:\n%s", log.String())
			}
			break
		}
	}
	t.Fatal("no port stays free")
	return nil
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// impatient returns the rules with alerts that wait for a second instead of minutes.
func impatient(t *testing.T) []byte {
	t.Helper()
	var f struct {
		Groups []struct {
			Name  string           `yaml:"name"`
			Rules []map[string]any `yaml:"rules"`
		} `yaml:"groups"`
	}
	if err := yaml.Unmarshal([]byte(read(t, deploy("prometheus/detent.rules.yml"))), &f); err != nil {
		t.Fatal(err)
	}
	for _, g := range f.Groups {
		for _, r := range g.Rules {
			if r["for"] != nil {
				r["for"] = "1s"
			}
		}
	}
	b, err := yaml.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// sample is one of a query's results.
type sample struct {
	Metric map[string]string
	Value  [2]any
}

// float is 0 for a native histogram, which is no number.
func (s sample) float() float64 {
	text, _ := s.Value[1].(string)
	v, _ := strconv.ParseFloat(text, 64)
	return v
}

// query asks for the value of an expression, now. An error is Prometheus's own: that
// it cannot parse or evaluate the expression.
func (s *server) query(t *testing.T, expr string) ([]sample, error) {
	t.Helper()
	res, err := http.Get(s.url + "/api/v1/query?query=" + url.QueryEscape(expr))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var answer struct {
		Status, Error string
		Data          struct {
			ResultType string
			Result     json.RawMessage
		}
	}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		t.Fatalf("%s: %v", res.Status, err)
	}
	if answer.Status != "success" {
		return nil, fmt.Errorf("%s: %s", expr, answer.Error)
	}
	var list []sample
	if err := json.Unmarshal(answer.Data.Result, &list); err != nil {
		return nil, fmt.Errorf("%s is a %s: %w", expr, answer.Data.ResultType, err)
	}
	return list, nil
}

// must is query for expressions of the tests.
func (s *server) must(t *testing.T, expr string) []sample {
	t.Helper()
	list, err := s.query(t, expr)
	if err != nil {
		t.Fatal(err)
	}
	return list
}
