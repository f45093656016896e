//go:build detent_portable

package ksleep

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// call makes a system call of four arguments, of which the first and the last are
// pointers. The runtime's monitor takes the P away when it sees that it blocks.
func call(trap uintptr, a1 unsafe.Pointer, a2, a3 uintptr, a4 unsafe.Pointer) {
	unix.Syscall6(trap, uintptr(a1), a2, a3, uintptr(a4), 0, 0)
}

// callEpoll is epoll_pwait(2) for one event.
func callEpoll(epfd int, event *unix.EpollEvent, ms int) (int, syscall.Errno) {
	n, _, errno := unix.Syscall6(unix.SYS_EPOLL_PWAIT, uintptr(epfd), uintptr(unsafe.Pointer(event)), 1, uintptr(ms), 0, 0)
	return int(n), errno
}
