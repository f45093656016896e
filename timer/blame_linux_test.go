//go:build linux && !detent_portable

package timer_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// quotaEnv is the directory of the cgroup with a CPU quota, for the process that
// TestBlameThrottled starts in it.
const quotaEnv = "DETENT_TEST_QUOTA"

// TestBlameThrottled runs timers beside spinning goroutines in a process with a
// CPU quota of a fifth of a CPU.
func TestBlameThrottled(t *testing.T) {
	if dir := os.Getenv(quotaEnv); dir != "" {
		throttled(t, dir)
		return
	}
	dir := newQuotaGroup(t, 20_000, 100_000)
	exe, err := os.Executable()
	if err != nil {
		t.Skip(err)
	}
	// The child waits for a line on its input before it begins, for it to be in
	// the cgroup by then.
	cmd := exec.Command(exe, "-test.run=^TestBlameThrottled$", "-test.v", "-test.timeout=5m")
	cmd.Env = append(os.Environ(), quotaEnv+"="+dir)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Skipf("cannot start another process here: %v", err)
	}
	join := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(cmd.Process.Pid)), 0)
	if join != nil {
		_ = cmd.Process.Kill()
	}
	fmt.Fprintln(in)
	err = cmd.Wait()
	switch {
	case join != nil:
		t.Skipf("cannot put a process into the cgroup: %v", join)
	case err != nil || !strings.Contains(out.String(), "--- PASS: TestBlameThrottled"):
		t.Fatalf("%v\n%s", err, out.String())
	}
	t.Log(out.String())
}

// throttled is what the process does.
func throttled(t *testing.T, dir string) {
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	var stop atomic.Bool
	defer stop.Store(true)
	for range runtime.GOMAXPROCS(0) {
		go func() {
			for !stop.Load() {
			}
		}()
	}
	s := mustNew(t, nil)
	tick := s.NewTicker(time.Millisecond) // so that always something is about to be due
	defer tick.Stop()
	// For as long as it takes the kernel to have counted ten waits of 80 ms,
	// perhaps for several CPUs each.
	const enough = 800 * time.Millisecond
	begin := throttledFor(t, dir)
	for limit := time.Now().Add(time.Minute); throttledFor(t, dir) < begin+enough; {
		if time.Now().After(limit) {
			t.Skipf("throttled for %v in a minute", throttledFor(t, dir)-begin)
		}
		s.Sleep(500 * time.Microsecond)
	}
	st := s.Stats()
	checkBlame(t, st)
	// All of these waits but the first, whose beginning nobody knows, made a tick
	// late.
	if got := st.Blame.Throttled.Sum(); got < 10*time.Millisecond || got > st.Lateness.Sum() {
		t.Errorf("%v blamed on the quota, which kept the CPUs from running for %v", got, throttledFor(t, dir)-begin)
	}
}

// throttledFor returns how long the CPUs of a cgroup have been throttled.
func throttledFor(t *testing.T, dir string) time.Duration {
	text, err := os.ReadFile(filepath.Join(dir, "cpu.stat"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, _ := strconv.Atoi(value)
		switch name {
		case "throttled_usec":
			return time.Duration(n) * time.Microsecond
		case "throttled_time":
			return time.Duration(n)
		}
	}
	t.Fatalf("cpu.stat does not tell: %s", text)
	return 0
}

// newQuotaGroup makes a cgroup with a quota, which the end of the test removes, or
// skips the test.
func newQuotaGroup(t *testing.T, quota, period int) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can make a cgroup")
	}
	files := map[string]string{"cpu.max": fmt.Sprint(quota, " ", period)} // version 2
	top := "/sys/fs/cgroup"
	if handed, err := os.ReadFile(top + "/cgroup.subtree_control"); err != nil || !strings.Contains(" "+string(handed), " cpu") {
		top = "/sys/fs/cgroup/cpu"
		files = map[string]string{"cpu.cfs_quota_us": fmt.Sprint(quota), "cpu.cfs_period_us": fmt.Sprint(period)}
	}
	dir := filepath.Join(top, fmt.Sprintf("detent-test-%d", os.Getpid()))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skipf("cannot make a cgroup with the cpu controller: %v", err)
	}
	t.Cleanup(func() {
		if err := os.Remove(dir); err != nil {
			t.Errorf("left behind: %v", err)
		}
	})
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0); err != nil {
			t.Skipf("cannot set a quota: %v", err)
		}
	}
	return dir
}
