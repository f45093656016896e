package osthread

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestGo: name and slack are those of the thread, as the kernel has them; it is
// never the first thread; and it ends with the function.
func TestGo(t *testing.T) {
	for range 200 {
		done := make(chan int)
		Go("lab-test", func() {
			name, err := os.ReadFile("/proc/thread-self/comm")
			if err != nil {
				t.Logf("no names: %v", err)
			} else if got := strings.TrimSpace(string(name)); got != "lab-test" {
				t.Errorf("the thread's name is %q", got)
			}
			LeastSlack()
			slack, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
			if err != nil || slack != 1 {
				t.Errorf("slack is %d, %v; want 1", slack, err)
			}
			done <- unix.Gettid()
		})
		tid := <-done
		if tid == unix.Getpid() {
			t.Fatal("on the first thread")
		}
		for waited := 0; alive(tid); waited++ {
			if waited > 60_000 {
				t.Fatalf("thread %d has not ended", tid)
			}
			time.Sleep(time.Millisecond)
		}
	}
}

// alive reports whether the process has a thread tid.
func alive(tid int) bool {
	_, err := os.Stat("/proc/self/task/" + strconv.Itoa(tid))
	return err == nil
}
