//go:build linux && !detent_portable

package timer_test

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/detent-go/detent/internal/suite"
	"github.com/detent-go/detent/timer"
)

// inChild runs the calling test in a process of its own. There it returns true;
// otherwise the test has passed in the child, failed, or been skipped.
func inChild(t *testing.T, env ...string) bool {
	const mark = "DETENT_TEST_CHILD"
	if os.Getenv(mark) == t.Name() {
		return true
	}
	exe, err := os.Executable()
	if err != nil {
		t.Skipf("cannot start another process here: %v", err)
	}
	cmd := exec.Command(exe, "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=5m")
	cmd.Env = append(append(os.Environ(), mark+"="+t.Name()), env...)
	out, err := cmd.CombinedOutput()
	if len(out) == 0 && err != nil {
		t.Skipf("cannot start another process here: %v", err)
	}
	if err == nil && strings.Contains(string(out), "--- SKIP: "+t.Name()) {
		t.Skipf("%s", out)
	}
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
	return false
}

// TestWaker: Stats names the waker, from the first precise timer on.
func TestWaker(t *testing.T) {
	s := mustNew(t, nil)
	if got := s.Stats().Waker; got != "runtime timer" {
		t.Errorf("before the first timer Waker is %q", got)
	}
	s.Sleep(50 * time.Microsecond)
	if st := s.Stats(); st.Waker != "timerfd" || st.WakerErr != nil {
		t.Errorf("Waker is %q, WakerErr %v", st.Waker, st.WakerErr)
	}
}

// TestWakerRetried starts a service while no file descriptor is to be had:
// timers fire nevertheless, and there is a timerfd later.
func TestWakerRetried(t *testing.T) {
	testWakerRetried(t, func(s *timer.Service) { s.Sleep(50 * time.Microsecond) })
}

// TestWakerRetriedByWakeUp: so there is where nobody starts another timer.
func TestWakerRetriedByWakeUp(t *testing.T) {
	var ticker *timer.Ticker
	testWakerRetried(t, func(s *timer.Service) {
		if ticker == nil {
			ticker = s.NewTicker(100 * time.Microsecond)
		}
		<-ticker.C
	})
}

func testWakerRetried(t *testing.T, wait func(*timer.Service)) {
	if !inChild(t) {
		return
	}
	timer.Sleep(50 * time.Microsecond) // so that the netpoller is there
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Skip(err)
	}
	var none unix.Rlimit
	none.Max = was.Max
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &none); err != nil {
		t.Skip(err)
	}
	s := mustNew(t, &timer.Options{Shards: 1})
	wait(s)
	if st := s.Stats(); st.Waker != "runtime timer" || !errors.Is(st.WakerErr, unix.EMFILE) {
		t.Errorf("without file descriptors Waker is %q, WakerErr %v", st.Waker, st.WakerErr)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	hour := s.NewTimer(time.Hour)
	defer hour.Stop()
	suite.Eventually(t, "there is a timerfd", func() bool {
		wait(s)
		return s.Stats().Waker == "timerfd"
	})
	if err := s.Stats().WakerErr; err != nil {
		t.Errorf("WakerErr is %v", err)
	}
	s.Sleep(50 * time.Microsecond)
}
