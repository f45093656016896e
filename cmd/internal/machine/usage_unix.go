//go:build unix

package machine

import (
	"time"

	"golang.org/x/sys/unix"
)

func ReadUsage() Usage {
	var ru unix.Rusage
	err := unix.Getrusage(unix.RUSAGE_SELF, &ru)
	return Usage{
		CPU:      time.Duration(ru.Utime.Nano() + ru.Stime.Nano()),
		Switches: int64(ru.Nvcsw),
		Err:      err,
	}
}
