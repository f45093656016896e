//go:build linux && !detent_portable

package waker

import (
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// LaneTells says that [Lane.AwakeAt] is when the kernel woke the thread.
const LaneTells = true

// blocker is how the thread of a lane waits: for a futex, until an absolute time of
// CLOCK_MONOTONIC. See keeper for what it does with its P meanwhile.
type blocker struct {
	word   uint32 // what the futex is on; counts the pokes
	offset int64  // see Precise
	ts     unix.Timespec
	keeper
}

func (l *Lane) open() (err error) {
	l.keeper.open(l.o.ShareP)
	l.offset, err = offset()
	return err
}

// look returns what block is to be told.
func (b *blocker) look() uint32 { return atomic.LoadUint32(&b.word) }

// poke ends block; or, if block has not been called since look, has it return at
// once.
func (b *blocker) poke() {
	atomic.AddUint32(&b.word, 1)
	// It does not wait, so the scheduler is not told.
	_, _, _ = syscall.RawSyscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(&b.word)),
		futexWake, 1, 0, 0, 0)
	b.unpark()
}

// timespec returns the time of rt.Now for the kernel; nil, for ever, if it is too
// far away.
func (b *blocker) timespec(to int64) *unix.Timespec {
	if to > far {
		return nil
	}
	b.ts = timespec(to + b.offset)
	return &b.ts
}

// futexWait waits in the kernel, having told the Go scheduler, which has another
// thread use the P if there is need for it, and returns the time of CLOCK_MONOTONIC
// at which the thread was awake again, not necessarily with a P. There is no stack
// to be grown, nor anything that needs a P, until exitsyscall has returned.
//
//go:nosplit
//go:norace
func futexWait(addr *uint32, value uint32, ts *unix.Timespec) (awake int64) {
	entersyscall()
	_, _, _ = syscall.RawSyscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(addr)),
		futexWaitBitset, uintptr(value), uintptr(unsafe.Pointer(ts)), 0, matchAny)
	awake = nanotime()
	exitsyscall()
	return awake
}

// Operations of futex(2), within the process. Unlike FUTEX_WAIT, FUTEX_WAIT_BITSET
// takes an absolute time, and a set of wakers to be woken by.
const (
	futexPrivate    = 128
	futexWake       = 1 | futexPrivate
	futexWaitBitset = 9 | futexPrivate
	matchAny        = 1<<32 - 1
)

//go:linkname entersyscall runtime.entersyscall
//go:nosplit
func entersyscall()

//go:linkname exitsyscall runtime.exitsyscall
//go:nosplit
func exitsyscall()

// nanotime reads CLOCK_MONOTONIC, in a way that needs no P.
//
//go:linkname nanotime runtime.nanotime
//go:nosplit
func nanotime() int64
