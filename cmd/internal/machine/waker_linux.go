//go:build linux && !detent_portable

package machine

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// portableReason says why detent has no timerfd to be woken by; empty if it
// has one.
func portableReason() string {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return fmt.Sprintf("timerfd_create: %v", err)
	}
	_ = unix.Close(fd)
	return ""
}
