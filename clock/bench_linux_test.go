//go:build !detent_portable

package clock

import (
	"golang.org/x/sys/unix"

	"github.com/detent-go/detent/internal/vdso"
)

// otherReadings are what users of these clocks had before.
var otherReadings = []reading{
	{"unix.ClockGettime", func(n int) {
		var ts unix.Timespec
		for range n {
			unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
		}
		sinkNanos = ts.Nano()
	}},
	{"system-call", func(n int) {
		for range n {
			sinkNanos, _ = vdso.Syscall(unix.CLOCK_MONOTONIC)
		}
	}},
}
