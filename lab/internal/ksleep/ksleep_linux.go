package ksleep

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Operations of futex(2). The private ones are for words that no other process
// sees, which spares the kernel a look at the memory map.
const (
	futexWait = 0 | 128
	futexWake = 1 | 128
)

// Available reports whether a thread can sleep in these ways, by a nil error.
func Available() error { return nil }

// wait sleeps until a wake of addr, for at most d; for ever if d is negative. It
// returns at once if the word is not val, and now and then for no reason.
func wait(addr *uint32, val uint32, d time.Duration) {
	var timeout *unix.Timespec
	if d >= 0 {
		ts := unix.NsecToTimespec(int64(d))
		timeout = &ts
	}
	call(unix.SYS_FUTEX, unsafe.Pointer(addr), futexWait, uintptr(val), unsafe.Pointer(timeout))
}

// wake wakes at most n threads that wait for addr.
func wake(addr *uint32, n int) {
	// It does not block, so the scheduler need not know.
	_, _, errno := unix.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(addr)), futexWake, uintptr(n), 0, 0, 0)
	if errno != 0 {
		panic("ksleep: futex wake: " + errno.Error()) // only for a bad address
	}
}

// Epoll sleeps until a file of the epoll instance epfd is ready, or for the given
// number of milliseconds; for ever if that is negative. It reports whether a file
// is ready.
func Epoll(epfd int, ms int) bool {
	var event unix.EpollEvent
	n, errno := callEpoll(epfd, &event, ms)
	if errno != 0 && errno != unix.EINTR {
		panic("ksleep: epoll_pwait: " + errno.Error()) // only for a bad descriptor
	}
	return errno == 0 && n > 0
}

// Nanosleep sleeps for d, or somewhat less if a signal comes.
func Nanosleep(d time.Duration) {
	ts := unix.NsecToTimespec(int64(max(d, 0)))
	call(unix.SYS_NANOSLEEP, unsafe.Pointer(&ts), 0, 0, nil)
}
