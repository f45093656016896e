package timer_test

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/detent-go/detent/internal/suite"
	"github.com/detent-go/detent/timer"
)

// firstUseEnv is set in the process that TestFirstUse starts.
const firstUseEnv = "DETENT_TEST_FIRST_USE"

// TestFirstUse checks in a process of its own that importing the package does
// nothing: no goroutine of it runs and no timer descriptor is open before the
// first use, and then there are some goroutines or none, but timers fire.
func TestFirstUse(t *testing.T) {
	if os.Getenv(firstUseEnv) != "" {
		firstUse(t)
		return
	}
	exe, err := os.Executable()
	if err != nil {
		t.Skipf("cannot start another process here: %v", err)
	}
	cmd := exec.Command(exe, "-test.run=^TestFirstUse$", "-test.v", "-test.timeout=2m")
	cmd.Env = append(os.Environ(), firstUseEnv+"=1")
	out, err := cmd.CombinedOutput()
	if len(out) == 0 && err != nil {
		t.Skipf("cannot start another process here: %v", err)
	}
	if err != nil || !strings.Contains(string(out), "--- PASS: TestFirstUse") {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

func firstUse(t *testing.T) {
	before := runtime.NumGoroutine()
	if gs := oursRunning(); len(gs) > 0 {
		t.Errorf("before the first use %d goroutines run:\n%s", len(gs), strings.Join(gs, "\n\n"))
	}
	if n := timerFiles(); n > 0 {
		t.Errorf("before the first use %d timer descriptors are open", n)
	}
	timer.AfterFunc(time.Hour, func() {}).Stop()
	suite.Await(t, "the first timer fired", timer.After(50*time.Microsecond))
	suite.Await(t, "the second timer fired", timer.After(5*time.Millisecond))
	t.Logf("%d goroutines before the first use, %d after; %d timer descriptors",
		before, runtime.NumGoroutine(), timerFiles())
}

// oursRunning returns the stacks of goroutines, other than the caller's, with
// code of detent on them or started by it.
func oursRunning() (stacks []string) {
	buf := make([]byte, 1<<20)
	buf = buf[:runtime.Stack(buf, true)]
	for i, g := range strings.Split(string(buf), "\n\n") {
		if i > 0 && strings.Contains(g, "github.com/detent-go/detent/") {
			stacks = append(stacks, g)
		}
	}
	return stacks
}

// timerFiles is the number of open timerfds, where the system shows them.
func timerFiles() (n int) {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	for _, f := range list {
		if to, err := os.Readlink("/proc/self/fd/" + f.Name()); err == nil && strings.Contains(to, "timerfd") {
			n++
		}
	}
	return n
}
