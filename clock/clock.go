package clock

import (
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/detent-go/detent/internal/vdso"
)

// A Clock is one of the kernel's clocks. Only the constants are clocks. Their
// values are Linux's clock ids; they are the same on every system.
//
// Readings of one clock by any goroutines are in order: one that begins after
// another has ended is not smaller, except on Real, RealCoarse and TAI, which
// somebody may set.
type Clock int32

const (
	// Real is the wall clock, in nanoseconds since 1970. It is slewed and set.
	Real Clock = 0

	// Mono is CLOCK_MONOTONIC, which timers go by and time.Now's monotonic part
	// is of: nanoseconds since the machine started, without the time that it
	// was suspended. It is slewed as Real is, and never set. On systems other
	// than Linux it counts from its first use.
	Mono Clock = 1

	// Raw is Mono without slewing: the machine's own oscillator. For measuring
	// oscillators. An interval by Mono is the better second.
	Raw Clock = 4

	// RealCoarse and MonoCoarse are Real and Mono as of the kernel's last tick,
	// 1 to 10 ms ago, at a fifth of the cost. For log lines and cache expiry.
	RealCoarse Clock = 5
	MonoCoarse Clock = 6

	// Boot is Mono with the time that the machine was suspended.
	Boot Clock = 7

	// TAI is Real without leap seconds, if somebody has told the kernel how
	// many there were; otherwise it is Real.
	TAI Clock = 11
)

// Clocks returns all clocks.
func Clocks() []Clock { return []Clock{Mono, Raw, Boot, Real, TAI, MonoCoarse, RealCoarse} }

// Nanos reads the clock, in nanoseconds. It costs what the vDSO's function costs
// and two nanoseconds, does not allocate, and cannot fail: see [Clock.Source] for
// what happens where there is no vDSO.
//
// The call needs 5 KB of the goroutine's stack. A goroutine with less left gets
// a larger stack at its first reading.
func (c Clock) Nanos() int64 {
	if ns, ok := vdso.Now(int32(c)); ok {
		return ns
	}
	ns, _ := c.read()
	return ns
}

// Since returns the time that has passed since a reading of the same clock.
func (c Clock) Since(nanos int64) time.Duration { return time.Duration(c.Nanos() - nanos) }

// A Source is how a clock is read.
type Source uint8

const (
	// VDSO: by the function that the kernel maps into the process. It makes a
	// system call of its own when the kernel's clocksource cannot be read from
	// user space (hpet, acpi_pm, xen); only the cost tells.
	VDSO Source = iota + 1

	// Syscall: by the system call, some ten times as expensive, because the
	// process has no vDSO that could be called.
	Syscall

	// PackageTime: by time.Now, because the system has no such clock, or does
	// not let the process read it. Raw, Boot and the coarse clocks are then as
	// Mono and Real, and TAI is Real.
	PackageTime
)

func (s Source) String() string {
	switch s {
	case VDSO:
		return "vDSO"
	case Syscall:
		return "system call"
	case PackageTime:
		return "package time"
	}
	return "Source(" + strconv.Itoa(int(s)) + ")"
}

// Source tells how the clock is read in this process. Everything but VDSO is a
// fallback.
func (c Clock) Source() Source {
	_, source := c.read()
	return source
}

// Fallback returns why clocks are not read through the vDSO: nil if they are.
func Fallback() error { return vdso.Find() }

// read reads the clock by what works, and looks for the vDSO first if nobody has
// done that yet.
func (c Clock) read() (ns int64, source Source) {
	if vdso.Find() == nil {
		if ns, ok := vdso.Now(int32(c)); ok {
			return ns, VDSO
		}
	}
	if ns, err := vdso.Syscall(int32(c)); err == nil {
		return ns, Syscall
	}
	switch c {
	case Real, RealCoarse, TAI:
		return time.Now().UnixNano(), PackageTime
	case Mono, MonoCoarse, Raw, Boot:
		return int64(time.Since(origin())), PackageTime
	}
	panic(fmt.Sprintf("clock: reading of an invalid clock: %v", c))
}

// origin is where Mono begins that is made of package time.
var origin = sync.OnceValue(time.Now)

func (c Clock) String() string {
	switch c {
	case Real:
		return "Real"
	case Mono:
		return "Mono"
	case Raw:
		return "Raw"
	case RealCoarse:
		return "RealCoarse"
	case MonoCoarse:
		return "MonoCoarse"
	case Boot:
		return "Boot"
	case TAI:
		return "TAI"
	}
	return "Clock(" + strconv.Itoa(int(c)) + ")"
}
