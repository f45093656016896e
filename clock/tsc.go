package clock

import (
	"time"

	"github.com/detent-go/detent/internal/tsc"
)

// A TSC is a clock made of the CPU's cycle counter (the TSC of amd64, CNTVCT_EL0
// of arm64), scaled to CLOCK_MONOTONIC: its readings are nanoseconds, comparable
// with those of [Mono]. The zero TSC is ready to use. It must not be copied after
// first use. All methods are safe for concurrent use.
//
// It pays where the clock is read a hundred thousand times a second or more, and
// nanoseconds matter. Every half millisecond one reading takes 0.3 us, to follow
// the kernel's clock. While there are fewer than 32 readings in half a
// millisecond that does not pay, so a TSC is the kernel's clock then, and costs a
// little more than Mono.
//
// # Trust
//
// For the first 20 ms of use, while it measures the counter, a TSC is the
// kernel's clock: Mono, without waiting for anything. After that it uses the
// counter if
//
//   - the CPU promises an invariant TSC (on arm64 the architecture does);
//   - the kernel itself keeps time by it: its clocksource is "tsc", on arm64
//     "arch_sys_counter". To become it, the counters of all CPUs have passed the
//     kernel's own test of being in step. kvm-clock and the Hyper-V clock are
//     made of the TSC as well, but of one that the hypervisor may change;
//   - messages between a thread on one CPU and threads on the others, exchanged
//     in the background in the first milliseconds, did not arrive before they
//     were sent.
//
// The clocksource is looked at every quarter of a second of use, which takes one
// reading 10 us; the counter is compared with the kernel's clock with every line,
// that is every half millisecond. On loss of trust the TSC is the kernel's clock
// again, as of the first reading 0.25 s after the loss or sooner; time does not
// step back at the change. [TSC.Health] tells. It returns to the counter when all
// conditions hold again.
//
// No goroutine runs but for the first milliseconds of use: what has to be looked
// at, readings look at.
type TSC struct {
	engine engine
}

// Ordered reads the clock, in nanoseconds of CLOCK_MONOTONIC. A reading that
// begins after another one has ended, on whatever CPU, is not smaller. How far it
// may be off what Mono would have shown is what [TSC.Bounded] states: 0.05 to
// 0.6 us on an idle machine.
//
// It costs a tenth to a quarter less than Mono.
func (t *TSC) Ordered() int64 {
	if !tsc.Supported {
		return Mono.Nanos()
	}
	e := &t.engine
	seq := e.seq.Load()
	start, span, mult, base := e.start.Load(), e.span.Load(), e.mult.Load(), e.base.Load()
	if span != 0 {
		if d := tsc.Ordered() - start; d < span && e.seq.Load() == seq {
			return base + tsc.Scale(d, mult)
		}
	}
	ns, _ := e.read()
	return ns
}

// Unordered reads the clock, in nanoseconds of CLOCK_MONOTONIC, at a moment that
// the CPU chooses: it may read the counter before earlier instructions have been
// carried out or after later ones. For intervals within one thread. Between
// threads it is seen to run backwards, by up to 2 us: do not compare readings of
// different goroutines, or a goroutine's before and after anything that may have
// moved it to another thread.
//
// It costs half of what Mono costs.
func (t *TSC) Unordered() int64 {
	if !tsc.Supported {
		return Mono.Nanos()
	}
	e := &t.engine
	seq := e.seq.Load()
	start, span, mult, base := e.start.Load(), e.span.Load(), e.mult.Load(), e.base.Load()
	if span != 0 {
		d := tsc.Unordered() - start
		if d < span && e.seq.Load() == seq {
			return base + tsc.Scale(d, mult)
		}
		// The counter may have been read before the line that was found in
		// force, by microseconds.
		if early := -d; early < span/32 && e.seq.Load() == seq {
			return base - tsc.Scale(early, mult)
		}
	}
	ns, _ := e.read()
	return ns
}

// Bounded is Ordered, together with how far the reading may be off what Mono would
// have shown at the same moment. The bound is 0 while the TSC is the kernel's
// clock.
//
// The bound is exact about everything but one assumption: that the kernel has not
// changed the speed of CLOCK_MONOTONIC by more than 1000 ppm within the last half
// millisecond. Changes of adjtimex's frequency, by which ntpd, systemd-timesyncd
// and PTP daemons steer, keep within this. Those of its tick, by which chrony
// corrects large offsets, do not: a reading in the half millisecond after such a
// change can be off by up to 50 us, see [Health.Excess].
func (t *TSC) Bounded() (nanos int64, bound time.Duration) {
	if !tsc.Supported {
		return Mono.Nanos(), 0
	}
	ns, off := t.engine.read()
	return ns, time.Duration(off)
}

// Health tells whether the TSC is in use and why not, and what has been measured.
// It begins to measure if nothing has been read yet. It takes microseconds, and
// looks at the conditions of trust by itself if no reading has done so recently.
func (t *TSC) Health() Health {
	if !tsc.Supported {
		return Health{Err: tsc.Check()}
	}
	return t.engine.health()
}
