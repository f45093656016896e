//go:build !detent_portable

package ksleep

import (
	"syscall"
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

// Between the two ends there is no P, and the stack must not move: nothing is
// called there that could grow it, and the race detector looks away.

// call makes a system call of four arguments, of which the first and the last are
// pointers, with the P handed off before.
//
//go:nosplit
//go:norace
func call(trap uintptr, a1 unsafe.Pointer, a2, a3 uintptr, a4 unsafe.Pointer) {
	entersyscallblock()
	unix.RawSyscall6(trap, uintptr(a1), a2, a3, uintptr(a4), 0, 0)
	exitsyscall()
}

// callEpoll is epoll_pwait(2) for one event, with the P handed off before.
//
//go:nosplit
//go:norace
func callEpoll(epfd int, event *unix.EpollEvent, ms int) (int, syscall.Errno) {
	entersyscallblock()
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(epfd), uintptr(unsafe.Pointer(event)), 1, uintptr(ms), 0, 0)
	exitsyscall()
	return int(n), errno
}
