//go:build linux && (amd64 || arm64) && !detent_portable

package vdso

import (
	"bytes"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) {
	if entry.Load() != 0 {
		panic("the vDSO has been looked up before anybody has asked")
	}
	os.Exit(m.Run())
}

// ids are the clocks that package clock offers.
var ids = []int32{
	unix.CLOCK_REALTIME, unix.CLOCK_MONOTONIC, unix.CLOCK_MONOTONIC_RAW, unix.CLOCK_BOOTTIME, unix.CLOCK_TAI,
	unix.CLOCK_REALTIME_COARSE, unix.CLOCK_MONOTONIC_COARSE,
}

// needVDSO skips a test where the process has no vDSO, as under qemu's user
// mode of old.
func needVDSO(t testing.TB) {
	t.Helper()
	if err := Find(); errors.Is(err, ErrNoImage) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
}

// The parser finds what package debug/elf finds by the section headers.
func TestOwnImage(t *testing.T) {
	needVDSO(t)
	image, err := Image()
	if err != nil {
		t.Fatal(err)
	}
	offset, err := Lookup(image, symbol, version)
	if err != nil {
		t.Fatal(err)
	}
	// The section headers may lie behind what mappedSize says, on the same page.
	all := unsafe.Slice(&image[0], (len(image)+page-1)/page*page)
	file, err := elf.NewFile(bytes.NewReader(all))
	if err != nil {
		t.Skip("the mapped image has no section headers:", err)
	}
	symbols, err := file.DynamicSymbols()
	if err != nil {
		t.Skip(err)
	}
	for _, s := range symbols {
		if s.Name == symbol {
			if s.Value-file.Progs[0].Vaddr != offset {
				t.Errorf("Lookup = %#x, debug/elf %#x", offset, s.Value)
			}
			return
		}
	}
	t.Errorf("debug/elf does not find %s", symbol)
}

// A reading lies between two by system call.
func TestNow(t *testing.T) {
	needVDSO(t)
	for _, id := range ids {
		for range 1000 {
			before, err := Syscall(id)
			if err != nil {
				t.Fatal(err)
			}
			ns, ok := Now(id)
			after, err := Syscall(id)
			if err != nil {
				t.Fatal(err)
			}
			if !ok || ns < before || ns > after {
				t.Fatalf("clock %d: Now = %d, %v between %d and %d", id, ns, ok, before, after)
			}
		}
	}
}

func TestNowOfNoClock(t *testing.T) {
	needVDSO(t)
	for _, id := range []int32{10, 99, 1 << 30} {
		if ns, ok := Now(id); ok {
			t.Errorf("Now(%d) = %d", id, ns)
		}
		if ns, err := Syscall(id); !errors.Is(err, unix.EINVAL) {
			t.Errorf("Syscall(%d) = %d, %v", id, ns, err)
		}
	}
}

func TestDisable(t *testing.T) {
	before := Find()
	restore := Disable()
	if err := Find(); err != errDisabled {
		t.Errorf("Find = %v", err)
	}
	if ns, ok := Now(unix.CLOCK_MONOTONIC); ok {
		t.Errorf("Now = %d", ns)
	}
	if _, err := Syscall(unix.CLOCK_MONOTONIC); err != nil {
		t.Error(err)
	}
	restore()
	if err := Find(); err != before {
		t.Errorf("Find = %v after, %v before", err, before)
	}
}

// hostileFunc maps an image whose clock_gettime is hostile, and looks it up.
func hostileFunc(t *testing.T) uintptr {
	t.Helper()
	code, err := hex.DecodeString(hostile)
	if err != nil {
		t.Fatal(err)
	}
	spec := imageSpec{
		symbols:  []symbolSpec{{symbol, globalFunc, 8, 2, 0}},
		versions: []string{version},
		code:     code,
	}
	image, err := unix.Mmap(-1, 0, imageSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(image) })
	copy(image, spec.build())
	if err := unix.Mprotect(image, unix.PROT_READ|unix.PROT_EXEC); err != nil {
		t.Skip("no executable memory to be had:", err)
	}
	offset, err := Lookup(image, symbol, version)
	if err != nil {
		t.Fatal(err)
	}
	return uintptr(unsafe.Pointer(&image[offset]))
}

// The called function may use its registers and 4 KiB of stack as the ABI
// allows, at every depth of the goroutine's stack and at either alignment.
func TestCallHostile(t *testing.T) {
	fn := hostileFunc(t)
	for depth := range 300 {
		done := make(chan error)
		// A new goroutine starts with a small stack: at some depth it is the
		// call itself that makes it grow.
		go func() { done <- descend(fn, depth) }()
		if err := <-done; err != nil {
			t.Fatalf("depth %d: %v", depth, err)
		}
	}
}

// descend has frames of three sizes, so that the stack pointer takes on every
// alignment, each with words that must survive.
//
//go:noinline
func descend(fn uintptr, depth int) error {
	guard := [1]uint64{0x5a5a5a5a5a5a5a5a}
	if err := check(fn, depth, guard[:]); err != nil || depth == 0 {
		return err
	}
	return descend2(fn, depth-1)
}

//go:noinline
func descend2(fn uintptr, depth int) error {
	guard := [2]uint64{0x5a5a5a5a5a5a5a5a, 0x5a5a5a5a5a5a5a5a}
	if err := check(fn, depth, guard[:]); err != nil || depth == 0 {
		return err
	}
	return descend3(fn, depth-1)
}

//go:noinline
func descend3(fn uintptr, depth int) error {
	var guard [24]uint64
	for i := range guard {
		guard[i] = 0x5a5a5a5a5a5a5a5a
	}
	if err := check(fn, depth, guard[:]); err != nil || depth == 0 {
		return err
	}
	return descend(fn, depth-1)
}

func check(fn uintptr, depth int, guard []uint64) error {
	x, y := float64(depth), depth*3
	ns, errno := call(fn, int32(depth))
	if want := int64(depth+1)*1e9 + 5; ns != want || errno != 0 {
		return fmt.Errorf("call = %d, %d, want %d, 0", ns, errno, want)
	}
	if x != float64(depth) || y != depth*3 {
		return errors.New("a variable has changed")
	}
	for i, word := range guard {
		if word != 0x5a5a5a5a5a5a5a5a {
			return fmt.Errorf("word %d of the caller's frame is %#x", i, word)
		}
	}
	var zero [4]uint64 // cleared with the register that Go keeps at zero
	runtime.KeepAlive(&zero)
	if zero != [4]uint64{} {
		return fmt.Errorf("a cleared variable is %x", zero)
	}
	return nil
}

func BenchmarkNow(b *testing.B) {
	needVDSO(b)
	for b.Loop() {
		Now(unix.CLOCK_MONOTONIC)
	}
}

func BenchmarkSyscall(b *testing.B) {
	for b.Loop() {
		Syscall(unix.CLOCK_MONOTONIC)
	}
}
