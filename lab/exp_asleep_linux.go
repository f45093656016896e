package lab

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// lookAtThreads looks n times where the threads of this process are, but for the one
// that looks, which sleeps in between without a timer of the runtime's.
func lookAtThreads(n int) counted {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	self := strconv.Itoa(unix.Gettid())
	sum := map[string]float64{}
	for range n {
		ts := unix.NsecToTimespec(int64(lookEvery))
		_ = unix.Nanosleep(&ts, nil)
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return counted{err: err}
		}
		for _, task := range tasks {
			if task.Name() == self {
				continue
			}
			b, err := os.ReadFile("/proc/self/task/" + task.Name() + "/syscall")
			if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) {
				continue // The thread has ended.
			}
			if err != nil {
				return counted{err: err}
			}
			where, err := placeOf(string(b))
			if err != nil {
				return counted{err: err}
			}
			sum[where]++
		}
	}
	for k := range sum {
		sum[k] /= float64(n)
	}
	return counted{mean: sum}
}

// placeOf reads a line of /proc/PID/task/TID/syscall: a system call's number and its
// arguments, "running", or -1 of a thread that waits outside of a call.
func placeOf(line string) (string, error) {
	f := strings.Fields(line)
	if len(f) == 0 {
		return "", fmt.Errorf("an empty line tells of no system call: %w", errors.ErrUnsupported)
	}
	if f[0] == running {
		return running, nil
	}
	call, err := strconv.Atoi(f[0])
	if err != nil || len(f) < 5 {
		return "elsewhere", nil
	}
	// The fourth argument is a pointer to the timeout, or the timeout.
	arg, err := strconv.ParseUint(f[4], 0, 64)
	if err != nil {
		return "", fmt.Errorf("%q: %w", line, err)
	}
	switch call {
	case unix.SYS_FUTEX:
		if arg != 0 {
			return "futex, timed", nil
		}
		return "futex", nil
	case unix.SYS_EPOLL_PWAIT:
		if int32(arg) > 0 {
			return "epoll, timed", nil
		}
		return "epoll", nil
	case unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP:
		return "nanosleep", nil
	}
	return "elsewhere", nil
}
