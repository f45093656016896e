package timer_test

import (
	"context"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/detent-go/detent/internal/suite"
)

// exempt holds those of Go's tests that detent does not pass, each with the
// reason. A subtest stands for itself. A test in this list that passes is an
// error, unless the reason is pendingStays: how many cycles of the collector there are
// meanwhile is not up to the test, and with enough of them it passes. That such
// timers are collected is what TestCollected is about.
var exempt = map[string]string{
	"TestTimerGC/After":    pendingStays,
	"TestTimerGC/NewTimer": pendingStays,
}

// exemptPortable holds those that the portable build does not pass besides.
var exemptPortable = map[string]string{
	"TestTimerGC/Tick":      noWeakChannels,
	"TestTimerGC/NewTicker": noWeakChannels,
}

const (
	pendingStays   = "a pending timer belongs to the engine for some cycles of the collector: only the runtime sees at once that nobody can receive"
	noWeakChannels = "a weak reference to a channel needs package unsafe, which the portable build does without"
)

// hasty holds those of Go's tests that fail when something is later than a
// bound. On a busy machine that proves nothing, so they get more attempts; all
// others get one.
var hasty = []string{
	"TestAdjustTimers", "TestAfterQueuing", "TestAfterStop", "TestAfterTick", "TestAfterTimes", "TestChan",
	"TestLongAdjustTimers", "TestOverflowSleep", "TestReset", "TestTickTimes", "TestTicker",
	"TestTimerModifiedEarlier", "TestTimerStopStress", "TestZeroTimer",
}

// gorootLeast is how many of Go's tests must pass at the least: fewer means
// that this test has lost them, not that Go has.
const gorootLeast = 34

// TestGoroot runs Go's own sleep_test.go and tick_test.go against detent.
func TestGoroot(t *testing.T) {
	if suite.Race && testing.Short() {
		t.Skip("compiles a second test binary with the race detector")
	}
	for _, variant := range []struct {
		name, tags string
		short      bool
	}{
		// The long ones run once: they are about the engine, not about what
		// wakes it.
		{"default", "", testing.Short() || suite.Race},
		{"portable", "detent_portable", true},
	} {
		t.Run(variant.name, func(t *testing.T) {
			if portable && variant.tags == "" {
				t.Skip("this run is of the portable build")
			}
			t.Parallel() // They wait more than they work.
			g := &goroot{binary: buildGoroot(t, variant.tags), short: variant.short, exempt: maps.Clone(exempt)}
			if variant.tags != "" {
				g.portable = true
				maps.Copy(g.exempt, exemptPortable)
			}
			g.test(t)
			if !suite.Race {
				g.benchmark(t)
			}
		})
	}
}

// goroot is a test binary with Go's tests.
type goroot struct {
	binary string
	short  bool
	exempt map[string]string

	portable bool // of the portable build
}

// outcome is PASS, FAIL or SKIP, or empty for a test that never ended.
type outcome string

var resultLine = regexp.MustCompile(`(?m)^ *--- (PASS|FAIL|SKIP): (\S+) \(`)

// run runs the named top-level tests and returns what became of them and of
// their subtests, and the output.
func (g *goroot) run(t *testing.T, names ...string) (map[string]outcome, string) {
	t.Helper()
	out, _ := g.exec(t, "-test.v", "-test.timeout=2m", fmt.Sprintf("-test.short=%v", g.short),
		"-test.run=^("+strings.Join(names, "|")+")$")
	results := make(map[string]outcome)
	for _, name := range names {
		results[name] = ""
	}
	for _, m := range resultLine.FindAllStringSubmatch(out, -1) {
		results[m[2]] = outcome(m[1])
	}
	return results, out
}

// alone runs a subtest in a process of its own.
func (g *goroot) alone(t *testing.T, name string) (outcome, string) {
	t.Helper()
	out, _ := g.exec(t, "-test.v", "-test.timeout=2m", fmt.Sprintf("-test.short=%v", g.short),
		"-test.run=^"+strings.ReplaceAll(name, "/", "$/^")+"$")
	for _, m := range resultLine.FindAllStringSubmatch(out, -1) {
		if m[2] == name {
			return outcome(m[1]), out
		}
	}
	return "FAIL", out
}

func (g *goroot) exec(t *testing.T, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, g.binary, args...)
	cmd.Dir = filepath.Dir(g.binary)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// failed returns the names in results under the top-level test name that
// failed and are not exempt. A parent fails with its subtests, so it only
// counts where none of those failed.
func (g *goroot) failed(results map[string]outcome, name string) (names []string) {
	below := false
	for sub, r := range results {
		if strings.HasPrefix(sub, name+"/") && r == "FAIL" {
			below = true
			if g.exempt[sub] == "" && !parent(results, sub) {
				names = append(names, sub)
			}
		}
	}
	if r := results[name]; (r == "FAIL" && !below || r == "") && g.exempt[name] == "" {
		names = append(names, name)
	}
	return names
}

// parent reports whether a subtest of name failed.
func parent(results map[string]outcome, name string) bool {
	for sub, r := range results {
		if strings.HasPrefix(sub, name+"/") && r == "FAIL" {
			return true
		}
	}
	return false
}

func (g *goroot) test(t *testing.T) {
	list, err := g.exec(t, "-test.list=^Test")
	if err != nil {
		t.Fatalf("listing Go's tests: %v\n%s", err, list)
	}
	names := strings.Fields(list)
	results, out := g.run(t, names...)

	for _, name := range names {
		attempts := 1
		if slices.Contains(hasty, name) {
			attempts = 3
		}
		// What never ended was cut off with the process by another one: by
		// itself it shows what it does.
		own, log := results, out
		if own[name] == "" {
			own, log = g.run(t, name)
		}
		for i := 1; i < attempts && len(g.failed(own, name)) > 0; i++ {
			t.Logf("%s failed, which may be for want of time: once more", name)
			own, log = g.run(t, name)
		}
		if name == "TestTimerGC" {
			// Its subtests count objects, and with them those made for what the ones before
			// have abandoned; and those of tickers whose finalizers have not run yet, which
			// they do when there is a P for them.
			for _, sub := range g.failed(own, name) {
				for range 5 {
					if own[sub], log = g.alone(t, sub); own[sub] == "PASS" {
						break
					}
				}
			}
		}
		for sub, r := range own {
			if sub == name || strings.HasPrefix(sub, name+"/") {
				results[sub] = r
			}
		}
		if bad := g.failed(own, name); len(bad) > 0 {
			t.Errorf("%s failed: %s\n%s", name, strings.Join(bad, ", "), excerpt(log, name))
		}
	}

	passed := 0
	for _, name := range names {
		switch results[name] {
		case "PASS":
			passed++
		case "SKIP":
			t.Logf("%s skipped", name)
		}
	}
	t.Logf("%d of %d of Go's tests passed", passed, len(names))
	least := gorootLeast
	if g.short {
		least -= 3
	}
	if passed < least {
		t.Errorf("only %d of Go's tests passed, want at least %d", passed, least)
	}
	for name, why := range g.exempt {
		switch results[name] {
		case "PASS":
			if why == pendingStays && !g.portable {
				t.Logf("%s passes, this time: %s", name, why)
				continue
			}
			t.Errorf("%s passes: it no longer belongs in the list (%s)", name, why)
		case "SKIP", "":
			t.Logf("%s is in the list but did not run", name)
		default:
			t.Logf("%s fails, as listed: %s", name, why)
		}
	}
}

// excerpt returns what out says from the start of the top-level test name on, or
// its end if it does not start there.
func excerpt(out, name string) string {
	const most = 6000
	if i := strings.Index(out, "=== RUN   "+name+"\n"); i >= 0 {
		out = out[i:]
		return out[:min(len(out), most)]
	}
	return out[max(0, len(out)-most):]
}

// benchmark runs Go's benchmarks once, to see that they work.
func (g *goroot) benchmark(t *testing.T) {
	t.Helper()
	out, err := g.exec(t, "-test.run=^$", "-test.bench=.", "-test.benchtime=1x", "-test.timeout=3m")
	if err != nil {
		t.Errorf("Go's benchmarks: %v\n%s", err, out[max(0, len(out)-6000):])
	}
	if n := strings.Count(out, "ns/op"); n < 10 {
		t.Errorf("%d of Go's benchmarks ran, want at least 10\n%s", n, out)
	}
}
