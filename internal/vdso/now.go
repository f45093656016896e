//go:build linux && (amd64 || arm64) && !detent_portable

package vdso

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// none in entry says that there is no function to call.
const none = 1

// entry is the address of clock_gettime, 0 before the first look-up.
var entry atomic.Uintptr

// call runs clock_gettime(id) at address fn and returns the time in
// nanoseconds, and what the function returned: 0 or a negative errno.
//
//go:noescape
func call(fn uintptr, id int32) (ns int64, errno int32)

// Now reads clock id through the vDSO. It reports false if [Find] has not been
// called yet or has returned an error, or if the vDSO refuses the id.
func Now(id int32) (ns int64, ok bool) {
	if fn := entry.Load(); fn > none {
		ns, errno := call(fn, id)
		return ns, errno == 0
	}
	return 0, false
}

// Find looks up the vDSO's clock_gettime when it is first called, and returns
// why there is none to be called: nil if there is.
func Find() error {
	if entry.Load() > none {
		return nil
	}
	find.Lock()
	defer find.Unlock()
	if entry.Load() == 0 {
		var fn uintptr
		if fn, find.err = lookup(); find.err != nil {
			fn = none
		}
		entry.Store(fn)
	}
	if entry.Load() == none {
		return find.err
	}
	return nil
}

// find is the state of the look-up.
var find struct {
	sync.Mutex
	err error // why entry is none
}

var errDisabled = errors.New("vdso: disabled by a test")

// Disable makes the process one without a vDSO until the function that it
// returns is called. For tests: they must not run beside others that depend on
// the vDSO.
func Disable() (restore func()) {
	Find()
	find.Lock()
	defer find.Unlock()
	fn, err := entry.Load(), find.err
	find.err = errDisabled
	entry.Store(none)
	return func() {
		find.Lock()
		defer find.Unlock()
		find.err = err
		entry.Store(fn)
	}
}

// lookup finds the function in the process's own vDSO.
func lookup() (uintptr, error) {
	image, err := Image()
	if err != nil {
		return 0, err
	}
	offset, err := Lookup(image, symbol, version)
	if err != nil {
		return 0, err
	}
	if err := prepareSignals(); err != nil {
		return 0, fmt.Errorf("vdso: %w", err)
	}
	return uintptr(unsafe.Pointer(&image[offset])), nil
}

// ErrNoImage says that the kernel has not mapped a vDSO.
var ErrNoImage = errors.New("vdso: the process has no vDSO")

const (
	sysinfoEHDR = 33 // AT_SYSINFO_EHDR, the address of the vDSO's ELF header

	// maxImage is a limit of plausibility. Images are of 4 to 16 KiB.
	maxImage = 1 << 20

	// page is the smallest page size. Whatever the image's size, its first
	// page is mapped, and the program headers are in it.
	page = 4096
)

// Image returns the process's vDSO as it is mapped. Read only.
func Image() ([]byte, error) {
	auxv, err := unix.Auxv()
	if err != nil {
		return nil, fmt.Errorf("vdso: auxiliary vector: %w", err)
	}
	var base uintptr
	for _, entry := range auxv {
		if entry[0] == sysinfoEHDR {
			base = entry[1]
		}
	}
	if base == 0 || base%page != 0 {
		return nil, ErrNoImage
	}
	// A vDSO is no Go memory, so there is no pointer to derive this one from.
	start := unsafe.Add(unsafe.Pointer(nil), base)
	size, err := mappedSize(unsafe.Slice((*byte)(start), page))
	if err != nil {
		return nil, err
	}
	if size > maxImage {
		return nil, fmt.Errorf("%w: %d bytes", ErrFormat, size)
	}
	return unsafe.Slice((*byte)(start), size), nil
}
