//go:build detent_portable

package futex

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// block is futex(2). The runtime's monitor takes the P away when it sees that
// the call blocks.
func block(addr *uint32, op, val uintptr, timeout *unix.Timespec) {
	unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(addr)), op, val, uintptr(unsafe.Pointer(timeout)), 0, 0)
}
