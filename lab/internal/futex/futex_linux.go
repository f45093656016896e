package futex

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Operations of futex(2). The private ones are for words that no other process
// sees, which spares the kernel a look at the memory map.
const (
	opWait = 0 | 128
	opWake = 1 | 128
)

// Available reports whether there are futexes, by a nil error.
func Available() error { return nil }

// wait sleeps until a wake of addr, for at most d; for ever if d is negative. It
// returns at once if the word is not val, and now and then for no reason.
func wait(addr *uint32, val uint32, d time.Duration) {
	if d < 0 {
		block(addr, opWait, uintptr(val), nil)
		return
	}
	ts := unix.NsecToTimespec(int64(d))
	block(addr, opWait, uintptr(val), &ts)
}

// wake wakes at most n threads that wait for addr.
func wake(addr *uint32, n int) {
	// It does not block, so the scheduler need not know.
	_, _, errno := unix.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(addr)), opWake, uintptr(n), 0, 0, 0)
	if errno != 0 {
		panic("futex: wake: " + errno.Error()) // only for a bad address
	}
}
