//go:build !detent_portable

package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/detent-go/detent/clock"
	"github.com/detent-go/detent/internal/hostfs"
)

// A patient is this test's executable started anew, in a state that the probe is to
// find: it examines itself and prints the report.
const (
	patientChecks = "DETENT_PROBE_CHECKS" // what it runs, separated by commas
	patientFirst  = "DETENT_PROBE_FIRST"  // what it does before
)

func TestMain(m *testing.M) {
	checks := os.Getenv(patientChecks)
	if checks == "" {
		os.Exit(m.Run())
	}
	if err := playPatient(strings.Split(checks, ","), os.Getenv(patientFirst)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func playPatient(checks []string, first string) error {
	word, argument, _ := strings.Cut(first, " ")
	switch word {
	case "":
	case "slack":
		// An exec keeps the slack of the thread that makes it, and a thread's
		// children begin with it.
		slack, err := time.ParseDuration(argument)
		if err != nil {
			return err
		}
		if err := unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(slack), 0, 0, 0); err != nil {
			return err
		}
		if err := os.Unsetenv(patientFirst); err != nil {
			return err
		}
		return syscall.Exec("/proc/self/exe", os.Args, os.Environ())
	case "cgroup":
		// From here on the quota holds.
		if err := os.WriteFile(filepath.Join(argument, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0); err != nil {
			return err
		}
		if err := wantCPUs(argument); err != nil {
			return err
		}
	default:
		return fmt.Errorf("what is %q?", first)
	}
	if checks[0] == "all" {
		checks = nil
	}
	report, err := Run(context.Background(), Options{Effort: Quick, Checks: checks})
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(report)
}

// wantCPUs computes on four threads until the quota of a group has stopped it
// often enough to be told from a mishap; on a machine so busy that it never gets
// as much as the quota, it gives up.
func wantCPUs(group string) error {
	var stop atomic.Bool
	var burning sync.WaitGroup
	for range 4 {
		burning.Go(func() {
			for !stop.Load() {
			}
		})
	}
	defer burning.Wait()
	defer stop.Store(true)
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		groups, err := hostfs.ReadCgroups(os.DirFS("/"))
		if err != nil {
			return err
		}
		if g := groups.Groups[0]; g.Throttled >= 2 && 10*g.Throttled >= g.Periods {
			return nil
		}
	}
	return fmt.Errorf("%s was hardly ever throttled", group)
}

// A chart is what a patient prints.
type chart struct {
	Results []struct {
		Check    string
		Status   Status
		Error    string
		Findings []Finding
		Data     json.RawMessage
	}
}

func (c *chart) findings() []string {
	var found []string
	for _, r := range c.Results {
		for _, f := range r.Findings {
			found = append(found, f.ID+" "+f.Severity.String())
		}
	}
	return found
}

// examineChild runs a command that becomes a patient.
func examineChild(t *testing.T, cmd *exec.Cmd, checks, first string) *chart {
	t.Helper()
	cmd.Env = append(os.Environ(), patientChecks+"="+checks, patientFirst+"="+first)
	var errors strings.Builder
	cmd.Stderr = &errors
	out, err := cmd.Output()
	if err != nil {
		t.Skipf("the patient could not be made: %v: %s", err, errors.String())
	}
	var c chart
	if err := json.Unmarshal(out, &c); err != nil {
		t.Fatalf("%v in %q", err, out)
	}
	if len(c.Results) == 0 {
		t.Fatal("no results")
	}
	for _, r := range c.Results {
		t.Logf("%s %s %s", r.Check, r.Status, r.Error)
		for _, f := range r.Findings {
			t.Logf("    %s %s: %s", f.ID, f.Severity, f.Title)
			complete(t, f)
		}
	}
	return &c
}

func self(t *testing.T) *exec.Cmd {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return exec.Command(path)
}

func TestPatientWithSlack(t *testing.T) {
	c := examineChild(t, self(t), "process", "slack 2ms")
	if !slices.Contains(c.findings(), "process.timer-slack warning") {
		t.Errorf("a slack of 2 ms was not found: %q", c.findings())
	}
}

func TestPatientNiced(t *testing.T) {
	cmd := self(t)
	nice, err := exec.LookPath("nice")
	if err != nil {
		t.Skip(err)
	}
	cmd.Args = []string{nice, "-n", "5", cmd.Path}
	cmd.Path = nice
	c := examineChild(t, cmd, "process", "")
	if !slices.Contains(c.findings(), "process.low-priority notice") {
		t.Errorf("nice was not found: %q", c.findings())
	}
}

func TestPatientInTimeNamespace(t *testing.T) {
	cmd := self(t)
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		t.Skip(err)
	}
	cmd.Args = []string{unshare, "--time", "--monotonic", "3600", "--boottime", "7200", "--fork", cmd.Path}
	cmd.Path = unshare
	c := examineChild(t, cmd, "shifts", "")
	if found := c.findings(); !slices.Contains(found, "shifts.time-namespace info") {
		t.Errorf("the namespace was not found: %q", found)
	}
	var d ShiftsData
	if err := json.Unmarshal(c.Results[0].Data, &d); err != nil || d.Monotonic != time.Hour || d.Boottime != 2*time.Hour {
		t.Errorf("%+v, %v", d, err)
	}
	// The hour between the clocks is the namespace's, not a suspension.
	suspended := time.Duration(clock.Boot.Nanos() - clock.Mono.Nanos())
	if apart := d.Suspended - suspended; apart > time.Second || apart < -time.Second {
		t.Errorf("suspended for %v, by the clocks outside %v", d.Suspended, suspended)
	}
}

// A group of its own with a tenth of a CPU, four threads that want one each, and
// a GOMAXPROCS that somebody has set to eight.
func TestPatientThrottled(t *testing.T) {
	groups, err := hostfs.ReadCgroups(os.DirFS("/"))
	if err != nil {
		t.Skip(err)
	}
	dir := filepath.Join(groups.Groups[0].Path, fmt.Sprintf("detent-probe-%d", os.Getpid()))
	if groups.Version == 2 {
		// A group that has processes cannot hand on its controllers: begin at the top.
		dir = filepath.Join(groups.Groups[len(groups.Groups)-1].Path, filepath.Base(dir))
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() {
		// The patient has ended; the kernel takes a moment to notice.
		for range 100 {
			err := os.Remove(dir)
			if err == nil || errors.Is(err, fs.ErrNotExist) {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Errorf("%s remains", dir)
	})
	limit := map[string]string{"cpu.max": "10000 100000"}
	if groups.Version == 1 {
		limit = map[string]string{"cpu.cfs_quota_us": "10000"}
	}
	for file, value := range limit {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(value), 0); err != nil {
			t.Skip(err)
		}
	}
	cmd := self(t)
	t.Setenv("GOMAXPROCS", "8")
	c := examineChild(t, cmd, "quota,runtime,pauses", "cgroup "+dir)
	for _, want := range []string{"cpu.quota info", "cpu.quota-throttled warning", "runtime.gomaxprocs-above-quota warning"} {
		if !slices.Contains(c.findings(), want) {
			t.Errorf("%s was not found: %q", want, c.findings())
		}
	}
	for _, r := range c.Results {
		for _, f := range r.Findings {
			if f.ID == "cpu.quota-throttled" && f.Because != "runtime.gomaxprocs-above-quota" {
				t.Errorf("%s because of %q", f.ID, f.Because)
			}
		}
	}
}

// Without privileges every check answers, and says what it could not see.
func TestPatientWithoutPrivileges(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("has none to lose")
	}
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	// By its descriptor: the directory may be closed to others.
	cmd := exec.Command("/proc/self/fd/3")
	cmd.ExtraFiles = []*os.File{file}
	cmd.Dir = "/"
	const nobody = 65534
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody, NoSetGroups: true}}
	c := examineChild(t, cmd, "all", "")
	if len(c.Results) != len(Checks()) {
		t.Errorf("%d results of %d checks", len(c.Results), len(Checks()))
	}
	for _, r := range c.Results {
		if r.Status != Measured && r.Error == "" {
			t.Errorf("%s is %s and does not say why", r.Check, r.Status)
		}
	}
}
