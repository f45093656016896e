//go:build linux && !detent_portable

package waker

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/detent-go/detent/internal/rt"
	"github.com/detent-go/detent/internal/vdso"
)

// bootReader returns the function that reads CLOCK_BOOTTIME.
func bootReader() (func() (ns int64, bubbled bool), error) {
	if vdso.Find() == nil {
		if _, ok := vdso.Now(unix.CLOCK_BOOTTIME); ok {
			return readBoot, nil
		}
	}
	// readBoot will have to make the system call.
	if _, err := vdso.Syscall(unix.CLOCK_BOOTTIME); err != nil {
		return nil, fmt.Errorf("CLOCK_BOOTTIME: %w", err)
	}
	return readBoot, nil
}

func readBoot() (ns int64, bubbled bool) {
	_, bubbled = rt.Now()
	ns, ok := vdso.Now(unix.CLOCK_BOOTTIME)
	if !ok {
		ns, _ = vdso.Syscall(unix.CLOCK_BOOTTIME) // bootReader has seen it work.
	}
	return ns, bubbled
}

// id is the kernel's number of the clock.
func (c Clock) id() int {
	switch c {
	case Boottime:
		return unix.CLOCK_BOOTTIME
	case Realtime:
		return unix.CLOCK_REALTIME
	default:
		return unix.CLOCK_MONOTONIC
	}
}
