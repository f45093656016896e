package osthread

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

func isFirst() bool { return unix.Gettid() == unix.Getpid() }

func setName(name string) {
	// A thread without a name works as well.
	_ = os.WriteFile("/proc/self/task/"+strconv.Itoa(unix.Gettid())+"/comm", []byte(name), 0)
}

// LeastSlack asks for a timer slack of 1 ns for the calling thread: how much later
// than asked the kernel may end its sleeps, for the sake of fewer interrupts.
func LeastSlack() {
	// It cannot fail for one's own thread.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
}
