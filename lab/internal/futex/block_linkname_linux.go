//go:build !detent_portable

package futex

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// The two ends of a system call that is known to block. Both are names that the
// runtime keeps for other packages.

//go:linkname entersyscallblock runtime.entersyscallblock
//go:nosplit
func entersyscallblock()

//go:linkname exitsyscall runtime.exitsyscall
//go:nosplit
func exitsyscall()

// block is futex(2) with the P handed off before. Between the two ends there is
// no P, and the stack must not move: nothing is called there that could grow it,
// and the race detector looks away.
//
//go:nosplit
//go:norace
func block(addr *uint32, op, val uintptr, timeout *unix.Timespec) {
	entersyscallblock()
	unix.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(addr)), op, val, uintptr(unsafe.Pointer(timeout)), 0, 0)
	exitsyscall()
}
