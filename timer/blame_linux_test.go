//go:build linux && !detent_portable

package timer_test

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/detent-go/detent/internal/suite"
	"github.com/detent-go/detent/timer"
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
	services := []*timer.Service{mustNew(t, nil), mustNew(t, &timer.Options{Blame: true})}
	for _, s := range services {
		tick := s.NewTicker(time.Millisecond) // so that always something is about to be due
		defer tick.Stop()
	}
	// For as long as it takes the kernel to have counted ten waits of 80 ms,
	// perhaps for several CPUs each.
	const enough = 800 * time.Millisecond
	begin := throttledFor(t, dir)
	for limit := time.Now().Add(time.Minute); throttledFor(t, dir) < begin+enough; {
		if time.Now().After(limit) {
			t.Skipf("throttled for %v in a minute", throttledFor(t, dir)-begin)
		}
		services[0].Sleep(500 * time.Microsecond)
	}
	// All of these waits but the first, whose beginning nobody knows, made a tick
	// late.
	for _, s := range services {
		st := s.Stats()
		checkBlame(t, st)
		if got := st.Blame.Throttled.Sum(); got < 10*time.Millisecond || got > st.Lateness.Sum() {
			t.Errorf("%v blamed on the quota, which kept the CPUs from running for %v", got, throttledFor(t, dir)-begin)
		}
	}
}

// TestBlameKernel stops a process of its own before a deadline and has it go on a
// while after: that while is the kernel's part of the lateness, at least.
func TestBlameKernel(t *testing.T) {
	if os.Getenv(stoppedEnv) != "" {
		stopped(t)
		return
	}
	exe, err := os.Executable()
	if err != nil {
		t.Skip(err)
	}
	cmd := exec.Command(exe, "-test.run=^TestBlameKernel$", "-test.v", "-test.timeout=5m")
	cmd.Env = append(os.Environ(), stoppedEnv+"=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Skipf("cannot start another process here: %v", err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	passed := false
	for lines := bufio.NewScanner(out); lines.Scan(); {
		line := lines.Text()
		t.Log(line)
		if strings.HasPrefix(line, "--- SKIP: TestBlameKernel") {
			t.Skip("the process skipped the test")
		}
		passed = passed || strings.HasPrefix(line, "--- PASS: TestBlameKernel")
		var from, to int64
		if n, _ := fmt.Sscanf(line, "a deadline from %d to %d", &from, &to); n != 2 {
			continue
		}
		// If the process does not stand still in time, it is told so.
		_ = cmd.Process.Signal(unix.SIGSTOP)
		for limit := time.Now().Add(time.Minute); !standsStill(t, cmd.Process.Pid) && time.Now().Before(limit); {
			time.Sleep(time.Millisecond)
		}
		inTime := monotonic(t) < from
		for monotonic(t) < to+int64(stoppedFor) {
			time.Sleep(time.Millisecond)
		}
		_ = cmd.Process.Signal(unix.SIGCONT)
		fmt.Fprintln(in, inTime)
	}
	if err := cmd.Wait(); err != nil || !passed {
		t.Fatalf("the process failed: %v", err)
	}
}

// stoppedEnv is set in the process that TestBlameKernel starts, and stoppedFor how
// long it is kept from running after a deadline.
const (
	stoppedEnv = "DETENT_TEST_STOPPED"
	stoppedFor = 100 * time.Millisecond
)

// stopped is what the process does.
func stopped(t *testing.T) {
	in := bufio.NewReader(os.Stdin)
	s := mustNew(t, &timer.Options{Shards: 1, Blame: true}).WithSlack(0)
	s.Sleep(time.Millisecond) // so that there is a witness
	const after = 500 * time.Millisecond
	for range 20 {
		time.Sleep(10 * time.Millisecond) // so that it waits
		told := s.Stats().Blame.Kernel.Count()
		fired := make(chan struct{})
		from := monotonic(t)
		s.AfterFunc(after, func() { close(fired) })
		fmt.Printf("a deadline from %d to %d\n", from+int64(after), monotonic(t)+int64(after))
		<-fired
		inTime, err := in.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		st := s.Stats()
		checkBlame(t, st)
		if inTime != "true\n" || st.Blame.Kernel.Count() == told {
			continue // It was not stopped before the deadline, or the witness did not wait.
		}
		if got := st.Blame.Kernel.Max(); got < stoppedFor {
			t.Errorf("the kernel is blamed for %v, want %v at least", got, stoppedFor)
		}
		return
	}
	t.Skip("the process could not be stopped at the right time")
}

// standsStill reports whether all threads of a process are stopped.
func standsStill(t *testing.T, pid int) bool {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return false
	}
	for _, task := range tasks {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/stat", pid, task.Name()))
		// The state follows the name, which is in parentheses.
		if at := bytes.LastIndexByte(stat, ')'); err != nil || at < 0 || at+2 >= len(stat) || stat[at+2] != 'T' {
			return false
		}
	}
	return true
}

// monotonic reads CLOCK_MONOTONIC, which is the same for all processes.
func monotonic(t *testing.T) int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		t.Fatal(err)
	}
	return ts.Nano()
}

// TestBlameCost: the thread is there from the first precise timer of a service
// that asks for it to the service's end, with its files.
func TestBlameCost(t *testing.T) {
	if !inChild(t) {
		return
	}
	timer.Sleep(50 * time.Microsecond) // so that the netpoller is there
	files := anonFiles(t)
	plain := mustNewOpen(t, nil)
	plain.Sleep(50 * time.Microsecond)
	if n := anonFiles(t); n > files+runtime.GOMAXPROCS(0) {
		t.Errorf("%d files for a service that asks for nothing", n-files)
	}
	closes(t, plain)
	s := mustNewOpen(t, &timer.Options{Shards: 1, Blame: true})
	coarse := s.AfterFunc(time.Hour, func() {})
	if n := anonFiles(t); n != files {
		t.Errorf("%d files before the first precise timer", n-files)
	}
	s.Sleep(50 * time.Microsecond)
	if n := anonFiles(t); n != files+3 {
		t.Errorf("%d files, want a timerfd, an epoll and an eventfd", n-files)
	}
	if st := s.Stats(); st.BlameErr != nil {
		t.Errorf("BlameErr is %v", st.BlameErr)
	}
	coarse.Stop()
	closes(t, s)
	suite.Eventually(t, "the files are closed", func() bool { return anonFiles(t) == files })
	suite.Eventually(t, "the goroutines have ended", func() bool {
		return !slices.ContainsFunc(oursRunning(), func(s string) bool { return strings.Contains(s, "Witness") })
	})
}

// anonFiles counts open files that are none of a file system.
func anonFiles(t *testing.T) (n int) {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip(err)
	}
	for _, f := range list {
		if to, err := os.Readlink("/proc/self/fd/" + f.Name()); err == nil && strings.HasPrefix(to, "anon_inode:") {
			n++
		}
	}
	return n
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
