package probe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/detent-go/detent/clock"
)

// The check of what clocks cost this process. It has ClocksData.
var clocksCheck = Check{
	Name:  "clocks",
	About: "what each clock costs to read and how finely it advances, and whether this process reads it without a system call",
	Budget: func(e *Env) time.Duration {
		return time.Duration(clockRounds(e.Effort))*700*time.Microsecond + 50*time.Millisecond
	},
	Run: func(ctx context.Context, e *Env) Result {
		if err := e.own(); err != nil {
			return Result{Err: err}
		}
		// A busy machine may take longer.
		d, err := measureClocks(ctx, clockRounds(e.Effort), 2*clockTime(e.Effort))
		if d.Refused != "" && err == nil {
			err = errors.New(d.Refused)
		}
		return Result{Err: err, Data: d, Findings: judgeClocks(d)}
	},
}

func clockRounds(e Effort) int {
	switch e {
	case Quick:
		return 150
	case Thorough:
		return 10_000
	}
	return 1000
}

// clockTime is what the rounds take on an idle machine.
func clockTime(e Effort) time.Duration {
	return time.Duration(clockRounds(e))*700*time.Microsecond + 50*time.Millisecond
}

const (
	// A clock that costs less than a reading by system call by servedBy is
	// served by the vDSO: half of the call's price is entering the kernel. One
	// that saves less than callBy makes the call itself. The two are far apart
	// so that noise, which moves ratios of undisturbed rounds by a tenth, cannot
	// turn the one into the other.
	servedBy = 1.6
	callBy   = 1.25

	// A counter that is read in hardware takes 5 to 40 ns, one whose reading is
	// trapped by a hypervisor, a microsecond.
	trapped = 250

	// coarseMono is a step of CLOCK_MONOTONIC by which it cannot be the step of
	// a counter, and coarseTimer a resolution that no high-resolution timer has.
	coarseMono  = time.Microsecond
	coarseTimer = 500 * time.Microsecond
)

// judgeServed tells by the ratio of a system call's cost to a reading's, by the
// least of each and by the median of rounds.
func judgeServed(least, typical float64) Served {
	switch {
	case least == 0 || typical == 0:
		return ServedUnknown
	case least > servedBy && typical > callBy:
		return ServedYes
	case least < callBy && typical < servedBy:
		return ServedNo
	}
	return ServedUnknown
}

// clock returns the row of a name.
func (d *ClocksData) clock(pkg, name string) ClockCost {
	for _, c := range d.Clocks {
		if c.Package == pkg && c.Name == name {
			return c
		}
	}
	return ClockCost{Served: ServedUnknown}
}

// judgeClocks has no opinion on a clock of which it is unknown how it is read.
func judgeClocks(d *ClocksData) []Finding {
	if d.Stopped {
		return []Finding{{
			ID: "clocks.stopped", Severity: Critical, Confidence: Certain,
			Title:    "the monotonic clock of this process stands still",
			Detail:   "Timers never fire and durations are zero. The kernel refuses clock_gettime to this process and it has no vDSO to read the clock by, as a sandbox can arrange it.",
			Evidence: []Evidence{{"clock_gettime", cmp.Or(d.Refused, "the clock does not advance"), "system call"}},
			Remedy:   []string{"allow the system call clock_gettime (228 on amd64, 113 on arm64) in the sandbox's seccomp filter"},
		}}
	}
	var found []Finding
	now, mono, coarse := d.clock("time", "Now"), d.clock("clock", "Mono"), d.clock("clock", "MonoCoarse")
	evidence := func() []Evidence {
		list := []Evidence{
			costEvidence("time.Now", now.Cost), costEvidence("CLOCK_MONOTONIC by vDSO", mono.Cost),
			costEvidence("CLOCK_MONOTONIC_COARSE by vDSO", coarse.Cost),
			{"vDSO mapped", string(d.Mapped), "AT_SYSINFO_EHDR in the auxiliary vector"},
		}
		if mono.How != clock.VDSO.String() {
			list[1].Name, list[2].Name = "CLOCK_MONOTONIC", "CLOCK_MONOTONIC_COARSE"
		}
		if mono.Syscall != nil {
			list = append(list, costEvidence("CLOCK_MONOTONIC by system call", *mono.Syscall))
		}
		if d.Counter != nil {
			list = append(list, costEvidence("the cycle counter", *d.Counter))
		}
		return list
	}
	switch traps := d.Counter != nil && d.Counter.Least > trapped; {
	case d.Runtime == ServedNo && (d.Mapped == ServedNo || mono.Served == ServedYes):
		f := Finding{
			ID: "clocks.process-without-vdso", Severity: Critical, Confidence: Likely,
			Title:    fmt.Sprintf("this process reads the clock by system calls: time.Now takes %s", nanos(now.Cost.Least)),
			Detail:   "The machine's clock can be read without one, but the Go runtime has found no vDSO in this process when it started. It costs several times what it should.",
			Evidence: evidence(),
			Remedy: []string{
				"look whether the kernel was started with vdso=0: grep -w vdso /proc/cmdline, and remove it",
				"look whether the process has a vDSO: grep vdso /proc/PID/maps; if not, whatever starts it takes it away: a tracer (rr, gVisor in ptrace mode), a checkpoint/restore tool, a sandbox that rewrites the auxiliary vector, an emulator (qemu-user)",
			},
		}
		// What is measured and what the kernel says agree, or the same clock is
		// cheap when it is read past the runtime.
		if d.Mapped == ServedNo || mono.How == clock.VDSO.String() {
			f.Confidence = Certain
		}
		found = append(found, f)
	case traps:
		f := Finding{
			ID: "clocks.counter-trapped", Severity: Warning, Confidence: Certain,
			Title:    fmt.Sprintf("reading the CPU's cycle counter takes %s: the hypervisor intercepts it", nanos(d.Counter.Least)),
			Detail:   "In hardware it takes 5 to 40 ns. Every clock that is made of the counter costs as much more, time.Now included, with the vDSO as without.",
			Evidence: evidence(),
			Remedy: []string{
				"ask whoever runs the hypervisor to let guests read the counter (no TSC exiting, no TSC emulation; on Xen: tsc_mode=\"native\"), or move to a host whose TSC runs at the frequency that the guest has been given",
				"read the clock more rarely; clock.MonoCoarse does not touch the counter",
			},
		}
		if d.Counter.Least < 2*trapped {
			f.Confidence = Likely
		}
		found = append(found, f)
	case d.Runtime == ServedNo:
		f := Finding{
			ID: "clocks.vdso-falls-back", Severity: Critical, Confidence: Likely,
			Title:    fmt.Sprintf("the vDSO makes a system call for every reading of the clock: time.Now takes %s", nanos(now.Cost.Least)),
			Detail:   "The kernel's clocksource cannot be read from user space (hpet, acpi_pm, xen, jiffies), so that the vDSO asks the kernel, call by call.",
			Evidence: evidence(),
			Remedy: []string{
				"see which clocksource is in use and why: cat /sys/devices/system/clocksource/clocksource0/current_clocksource; dmesg | grep -i -e clocksource -e tsc",
				"if the machine's TSC is sound, switch to it: echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource (until the next boot; for good: clocksource=tsc on the kernel's command line)",
			},
		}
		// The coarse clock needs no device: the vDSO itself is in order.
		if mono.How == clock.VDSO.String() && coarse.Served == ServedYes {
			f.Confidence = Certain
		}
		found = append(found, f)
	}
	if d.Fallback != "" && d.Runtime == ServedYes {
		found = append(found, Finding{
			ID: "clocks.package-clock-falls-back", Severity: Info, Confidence: Certain,
			Title:    "package clock does not read through the vDSO here, although package time does",
			Evidence: []Evidence{{"reason", d.Fallback, "clock.Fallback"}, costEvidence("clock.Mono", mono.Cost), costEvidence("time.Now", now.Cost)},
			Remedy:   []string{"use time.Now in this build: it is the cheaper one"},
		})
	}
	if d.Refused != "" {
		found = append(found, Finding{
			ID: "clocks.call-refused", Severity: Notice, Confidence: Certain,
			Title:    "this process may not make the system call clock_gettime",
			Detail:   "Its clocks are read through the vDSO, so that it runs. But CPU-time clocks do not work, package timer cannot set a timerfd to an absolute time and is as late as package time, and should the kernel's clocksource ever change to one that the vDSO cannot read, time stands still.",
			Evidence: []Evidence{{"clock_gettime", d.Refused, "system call"}},
			Remedy:   []string{"allow clock_gettime and clock_getres in the sandbox's seccomp filter (228 and 229 on amd64, 113 and 114 on arm64)"},
		})
	}
	if mono.Resolution >= coarseTimer {
		found = append(found, Finding{
			ID: "clocks.low-resolution-timers", Severity: Warning, Confidence: Certain,
			Title:    fmt.Sprintf("the kernel has no high-resolution timers: they fire on a grid of %v", mono.Resolution),
			Detail:   "No sleep can be shorter than that, whoever asks for it.",
			Evidence: []Evidence{{"clock_getres(CLOCK_MONOTONIC)", mono.Resolution.String(), "system call"}},
			Remedy: []string{
				"look for highres=off on the kernel's command line, and remove it: cat /proc/cmdline",
				"use a kernel with CONFIG_HIGH_RES_TIMERS, and look whether it has a usable clock event device: cat /sys/devices/system/clockevents/clockevent0/current_device",
			},
		})
	}
	// No step can be seen that is shorter than a reading takes, and other systems
	// have steps of their own.
	if mono.Step >= coarseMono && float64(mono.Step) > 3*mono.Cost.Typical && mono.How != clock.PackageTime.String() {
		found = append(found, Finding{
			ID: "clocks.coarse-step", Severity: Warning, Confidence: Certain,
			Title:    fmt.Sprintf("the monotonic clock advances in steps of %v", mono.Step),
			Detail:   "Shorter intervals measure as nothing or as a whole step.",
			Evidence: []Evidence{{"step of CLOCK_MONOTONIC", mono.Step.String(), "measured"}, {"how it is read", mono.How, "measured"}},
		})
	}
	return found
}

func costEvidence(name string, c Cost) Evidence {
	return Evidence{name, fmt.Sprintf("%s, typically %s", nanos(c.Least), nanos(c.Typical)), "measured"}
}

// nanos writes a cost for people.
func nanos(ns float64) string {
	switch {
	case ns < 10:
		return fmt.Sprintf("%.1f ns", ns)
	case ns < 10e3:
		return fmt.Sprintf("%.0f ns", ns)
	}
	return fmt.Sprintf("%.1f us", ns/1e3)
}
