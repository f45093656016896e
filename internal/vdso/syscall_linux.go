//go:build linux && !detent_portable

package vdso

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Syscall reads clock id by the system call. The runtime is not told, as it is
// for calls that can block: clock_gettime returns at once.
func Syscall(id int32) (ns int64, err error) {
	var ts unix.Timespec
	_, _, errno := unix.RawSyscall(unix.SYS_CLOCK_GETTIME, uintptr(id), uintptr(unsafe.Pointer(&ts)), 0)
	if errno != 0 {
		return 0, fmt.Errorf("clock_gettime(%d): %w", id, errno)
	}
	return ts.Nano(), nil
}
