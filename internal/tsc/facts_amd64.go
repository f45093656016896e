//go:build linux && !detent_portable

package tsc

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// useRDTSCP makes Ordered use RDTSCP: LFENCE is not known to hold RDTSC back.
//
//lint:ignore U1000 the assembly reads it
var useRDTSCP bool

func cpuid(leaf, sub uint32) (a, b, c, d uint32)

// A leaves function is CPUID, or a table of it.
type leaves func(leaf, sub uint32) (a, b, c, d uint32)

var checked = sync.OnceValue(func() error {
	f := readFeatures(cpuid)
	useRDTSCP = f.rdtscp && !f.lfenceOrders
	if err := f.usable(); err != nil {
		return err
	}
	// prctl(PR_SET_TSC) can forbid the instructions, with a SIGSEGV.
	var mode int32
	err := unix.Prctl(unix.PR_GET_TSC, uintptr(unsafe.Pointer(&mode)), 0, 0, 0)
	if err == nil && mode != unix.PR_TSC_ENABLE {
		return fmt.Errorf("the process may not read the TSC: %w", errors.ErrUnsupported)
	}
	return nil
})

// Check returns why the counter cannot be the source of a clock on this machine,
// as far as the CPU itself tells: nil if it can. The error wraps
// [errors.ErrUnsupported].
func Check() error { return checked() }

// features are what CPUID says of the TSC.
type features struct {
	invariant    bool // one rate in all power states
	rdtscp       bool
	lfenceOrders bool
}

func (f features) usable() error {
	switch {
	case !f.invariant:
		return fmt.Errorf("the CPU does not promise a TSC of constant rate (invariant TSC): %w", errors.ErrUnsupported)
	case !f.rdtscp && !f.lfenceOrders:
		return fmt.Errorf("the CPU has no ordered way to read the TSC: %w", errors.ErrUnsupported)
	}
	return nil
}

func readFeatures(cpuid leaves) features {
	var f features
	_, b, c, d := cpuid(0, 0)
	vendor := string([]byte{
		byte(b), byte(b >> 8), byte(b >> 16), byte(b >> 24),
		byte(d), byte(d >> 8), byte(d >> 16), byte(d >> 24),
		byte(c), byte(c >> 8), byte(c >> 16), byte(c >> 24),
	})
	f.lfenceOrders = vendor == "GenuineIntel"
	last, _, _, _ := cpuid(0x80000000, 0)
	if last >= 0x80000001 {
		_, _, _, d := cpuid(0x80000001, 0)
		f.rdtscp = d&(1<<27) != 0
	}
	if last >= 0x80000007 {
		_, _, _, d := cpuid(0x80000007, 0)
		f.invariant = d&(1<<8) != 0
	}
	if last >= 0x80000021 {
		a, _, _, _ := cpuid(0x80000021, 0)
		f.lfenceOrders = f.lfenceOrders || a&(1<<2) != 0 // "LFENCE always serializing"
	}
	return f
}

// Stated returns the counter's frequency as the machine states it, and where; 0
// if it does not. Each CPUID costs microseconds in a virtual machine.
func Stated() (hz float64, source string) {
	if hz, source := statedByCPUID(cpuid); hz != 0 {
		return hz, source
	}
	if hz := statedByPerf(); hz != 0 {
		return hz, "perf_event_mmap_page"
	}
	return 0, ""
}

func statedByCPUID(cpuid leaves) (hz float64, source string) {
	last, _, _, _ := cpuid(0, 0)
	if last >= 0x15 {
		// The TSC runs at crystal*numerator/denominator.
		denominator, numerator, crystal, _ := cpuid(0x15, 0)
		if denominator != 0 && numerator != 0 {
			if crystal != 0 {
				return float64(crystal) * float64(numerator) / float64(denominator), "CPUID 15h"
			}
			// CPUs that do not state the crystal have a TSC that runs at the
			// base frequency, which is in MHz.
			if last >= 0x16 {
				if mhz, _, _, _ := cpuid(0x16, 0); mhz&0xffff != 0 {
					return float64(mhz&0xffff) * 1e6, "CPUID 16h"
				}
			}
		}
	}
	const hypervisorPresent = 1 << 31
	if _, _, c, _ := cpuid(1, 0); c&hypervisorPresent == 0 {
		return 0, ""
	}
	if last, _, _, _ := cpuid(0x40000000, 0); last >= 0x40000010 && last < 0x40010000 {
		if khz, _, _, _ := cpuid(0x40000010, 0); khz != 0 {
			return float64(khz) * 1e3, "CPUID 40000010h"
		}
	}
	return 0, ""
}

// statedByPerf reads the factor by which the kernel itself scales the TSC for
// perf, from the page that it shares with whoever opens an event; 0 if the
// kernel does not offer it or does not let us.
func statedByPerf() (hz float64) {
	attr := unix.PerfEventAttr{
		Type:   unix.PERF_TYPE_SOFTWARE,
		Config: unix.PERF_COUNT_SW_DUMMY,
		Size:   uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
		Bits:   unix.PerfBitDisabled | unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv,
	}
	fd, err := unix.PerfEventOpen(&attr, 0, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return 0
	}
	defer unix.Close(fd)
	mapped, err := unix.Mmap(fd, 0, unix.Getpagesize(), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return 0
	}
	defer unix.Munmap(mapped)
	// The event is disabled: nobody writes to the page while we read.
	page := (*unix.PerfEventMmapPage)(unsafe.Pointer(&mapped[0]))
	const capUserTime = 1 << 3
	if page.Capabilities&capUserTime == 0 {
		return 0
	}
	return perfFrequency(page.Time_mult, page.Time_shift)
}

// perfFrequency inverts the kernel's mult = 10^6 << shift / kHz, where kHz is whole.
func perfFrequency(mult uint32, shift uint16) (hz float64) {
	if mult == 0 || shift >= 64 {
		return 0
	}
	khz := 1e6 * float64(uint64(1)<<shift) / float64(mult)
	return float64(int64(khz+0.5)) * 1e3
}
