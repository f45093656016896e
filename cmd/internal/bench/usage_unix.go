//go:build unix

package bench

import (
	"time"

	"golang.org/x/sys/unix"
)

func readUsage() usage {
	var ru unix.Rusage
	err := unix.Getrusage(unix.RUSAGE_SELF, &ru)
	return usage{
		cpu:      time.Duration(ru.Utime.Nano() + ru.Stime.Nano()),
		switches: int64(ru.Nvcsw),
		err:      err,
	}
}
