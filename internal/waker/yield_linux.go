//go:build linux && !detent_portable

package waker

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/detent-go/detent/internal/rt"
)

// futexHold waits in the kernel as futexWait does, without telling the scheduler.
// Should the goroutine be preempted then the wait ends, and signaled is true.
//
//go:norace
func futexHold(addr *uint32, value uint32, ts *unix.Timespec) (awake int64, signaled bool) {
	_, _, errno := syscall.RawSyscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(addr)),
		futexWaitBitset, uintptr(value), uintptr(unsafe.Pointer(ts)), 0, matchAny)
	return nanotime(), errno == syscall.EINTR
}

// Yield gives the goroutines in the P's queue their turn, those too that the caller
// has made ready. Unlike runtime.Gosched it does not wake another thread, nor put
// the caller behind the goroutines of all Ps.
func Yield() { goyield() }

// yield is Yield for a lane, which stays in its P's queue whatever is asked of it.
//
//go:nosplit
func yield() {
	unmark()
	goyield()
}

// unmark takes back the mark by which the scheduler has a goroutine join the end of
// the queue of all at the next function that it calls: a goroutine that is pinned
// goes on then, and the mark is gone. Whoever has set it sets it again if that does
// not do.
//
//go:nosplit
func unmark() {
	rt.Pin()
	deep()
	rt.Unpin()
}

// deep is a function that looks for the mark, as do all that need some stack.
//
//go:noinline
func deep() {
	var frame [256]byte
	touch(&frame)
}

//go:noinline
func touch(b *[256]byte) { b[0]++ }

// ignored reports whether the process ignores a signal, as by os/signal.Ignore. On
// MIPS it is not known: sets of signals are of another size there, and the call fails.
func ignored(s unix.Signal) bool {
	const ignore, setSize = 1, 8
	var action [32]uintptr // the handler, and more than there is behind it
	_, _, errno := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(s), 0,
		uintptr(unsafe.Pointer(&action)), setSize, 0, 0)
	return errno == 0 && action[0] == ignore
}

// canSpin is what sync.Mutex asks before it spins. If it is true then the queue of
// the P is empty, and another P is running.
//
//go:linkname canSpin sync.runtime_canSpin
//go:nosplit
func canSpin(int) bool

// goyield puts the goroutine at the end of its P's queue.
//
//go:linkname goyield runtime.goyield
func goyield()
