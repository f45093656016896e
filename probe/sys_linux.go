//go:build linux && !detent_portable

package probe

import (
	"time"

	"golang.org/x/sys/unix"
)

// klog reads the kernel's log by the system call, which is permitted where
// /dev/kmsg is missing or closed.
func klog() (string, error) {
	size, err := unix.Klogctl(unix.SYSLOG_ACTION_SIZE_BUFFER, nil)
	if err != nil {
		return "", err
	}
	buffer := make([]byte, size)
	n, err := unix.Klogctl(unix.SYSLOG_ACTION_READ_ALL, buffer)
	if err != nil {
		return "", err
	}
	return string(buffer[:n]), nil
}

// timerSlack is that of the calling thread. The runtime starts threads from
// others, whose slack they get.
func timerSlack() (time.Duration, error) {
	ns, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	return time.Duration(ns), err
}

// adjtimex only reads.
func adjtimex() (timex, error) {
	var t unix.Timex
	state, err := unix.Adjtimex(&t)
	return timex{
		state: state, status: int(t.Status), tai: int(t.Tai),
		offset: int64(t.Offset), freq: int64(t.Freq), maxError: int64(t.Maxerror), estError: int64(t.Esterror), tick: int64(t.Tick),
	}, err
}
