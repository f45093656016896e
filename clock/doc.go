// Package clock reads the time cheaply: the kernel's clocks at the cost of the
// vDSO alone, from Go without cgo, and the CPU's cycle counter as a clock that
// states its error.
//
// It is for programs that take millions of timestamps a second, and for those
// that need a clock that package time does not have (CLOCK_MONOTONIC_RAW,
// CLOCK_BOOTTIME, CLOCK_TAI). For almost everything else [time.Now] is right: it
// costs some 40 ns, works the same everywhere, can be faked in tests by
// testing/synctest, and everybody knows what it does. A program that reads the
// clock a hundred thousand times a second spends 0.4 % of one CPU on that.
//
// # What there is
//
//   - [Clock]: a clock of the kernel, as a constant: [Mono], [Raw], [Boot], [Real],
//     [TAI], and the coarse pair, which cost a fifth and step every few
//     milliseconds. Reading one costs as much as the vDSO's function, about half
//     of time.Now. This is the default; the others have to justify themselves.
//   - [TSC]: the cycle counter, scaled to CLOCK_MONOTONIC. Ordered readings save
//     2 to 5 ns over Mono, a tenth to a quarter; unordered ones half, and are for
//     intervals within one thread only. It states how far it may be off the
//     kernel's clock, and is the kernel's clock itself whenever the counter is not
//     to be trusted.
//   - [Now]: a time.Time with wall and monotonic parts, in half of the time that
//     time.Now takes.
//
// The figures are of a virtual machine (EPYC, Linux 6.18, clocksource tsc), by
//
//	go test -run '^$' -bench Clocks github.com/detent-go/detent/clock
//
//	time.Now              44 ns
//	time.Since            24       runtime.nanotime
//	Mono, Raw, Boot ...   23.3
//	MonoCoarse             5.1
//	TSC.Ordered           18.3
//	TSC.Unordered          9.2
//	Now                   18.3
//	unix.ClockGettime    208
//
// They vary with the machine and with what else it does; the ratios vary less, and
// the benchmark states each one's ratio to time.Now.
//
// # Caveats
//
// Suspend: Mono, Raw and therefore TSC and Now's monotonic part stand still while
// the machine is suspended; Boot does not.
//
// Live migration and snapshots: a virtual machine's counter may jump. A TSC
// notices when its current line ends, half a millisecond later at most, and goes
// on from the kernel's clock; until then it is off by up to the jump or half a
// millisecond, whichever is less.
//
// Garbage collection, throttling, a busy machine: no clock knows how long ago
// the goroutine that has read it lost its CPU.
//
// Signals: pprof books the time in the vDSO under runtime._VDSO, without the
// caller.
//
// Bubbles of testing/synctest have fake time. Nothing in this package knows of
// it: its clocks show the machine's time, inside a bubble and outside.
//
// # Where it runs
//
// On Linux on amd64 and arm64 as described. On arm64 with another version of Go
// than this package knows, and without cgo, the clocks are read by system call
// (they say so): the Go runtime has to find the goroutine when a signal arrives
// inside the vDSO, and how is known for each version by itself. The arm64 code
// has been run in emulation, not on hardware.
//
// On Linux on other architectures clocks are read by system call. On other
// systems, and with the build tag detent_portable, package time is underneath:
// everything works, as fast as that does, and says so.
//
// Importing the package does nothing: no goroutine, no calibration, no look-up
// before the first use.
package clock
