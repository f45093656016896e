//go:build linux && !detent_portable

package waker

import (
	"math"
	"time"

	"golang.org/x/sys/unix"
)

// timespec returns the time ns for the kernel. Where a Timespec has no room for
// it, as in 32 bits, it is as late as there is room for: whoever is woken then
// finds that there is nothing to do yet.
func timespec(ns int64) unix.Timespec {
	ts := unix.NsecToTimespec(ns)
	if ts.Nano() != ns {
		ts = unix.NsecToTimespec(math.MaxInt32 * int64(time.Second))
	}
	return ts
}
