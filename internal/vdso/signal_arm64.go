//go:build linux && !detent_portable

package vdso

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// parkG tells the assembly to store g at the bottom of the thread's signal
// stack for the time of a call. Written once, before the first call.
//
// When a signal arrives at an address inside the vDSO, the runtime of a program
// without cgo takes g from there (runtime.sigFetchG), because C may be using
// g's register. Without it the runtime would drop the preemption signal, after
// which the thread is never preempted again, and die of any other
// ("fatal: bad g in signal handler"). With cgo g is in thread local storage.
//
//lint:ignore U1000 the assembly reads it
var parkG bool

//go:linkname iscgo runtime.iscgo
var iscgo bool

// signalSlot returns the address of the slot of the calling thread as the
// runtime's offsets give it.
func signalSlot() uintptr

var errOffsets = errors.New("the Go runtime's layout is not known to this version of detent")

// prepareSignals arranges for signals during calls, or says why it cannot: then
// the vDSO must not be called. The offsets are those of the Go versions whose
// runtime has been read; the kernel confirms them.
func prepareSignals() error {
	if iscgo {
		return nil
	}
	if !offsetsKnown {
		return fmt.Errorf("%w: %s", errOffsets, runtime.Version())
	}
	// The kernel knows each thread's signal stack.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var stack struct {
		sp    uintptr
		flags int32
		size  uintptr
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_SIGALTSTACK, 0, uintptr(unsafe.Pointer(&stack)), 0); errno != 0 {
		return fmt.Errorf("sigaltstack: %w", errno)
	}
	if slot := signalSlot(); slot == 0 || slot != stack.sp {
		return fmt.Errorf("%w: signal stack at %#x, not %#x", errOffsets, stack.sp, slot)
	}
	parkG = true
	return nil
}
