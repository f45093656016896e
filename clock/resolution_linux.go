//go:build !detent_portable

package clock

import (
	"time"

	"golang.org/x/sys/unix"
)

// Resolution returns the step of the clock as the kernel states it: 1 ns for a
// clock that is as fine as its hardware, the length of a tick for a coarse one.
// 0 means that it is not known.
func (c Clock) Resolution() time.Duration {
	var ts unix.Timespec
	if unix.ClockGetres(int32(c), &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}
