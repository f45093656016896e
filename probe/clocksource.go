package probe

import (
	"slices"
	"strings"
	"time"

	"github.com/detent-go/detent/internal/hostfs"
)

// Served says whether a clock is read without a system call.
type Served string

const (
	ServedYes     Served = "yes"
	ServedNo      Served = "no"
	ServedMaybe   Served = "depends" // on the hypervisor
	ServedUnknown Served = "unknown"
)

// vdsoOf knows from the kernel's sources which clocksources the vDSO reads by
// itself, by the names that the kernel gives them:
//
//   - tsc, tsc-early: always (arch/x86/kernel/tsc.c, VDSO_CLOCKMODE_TSC).
//   - kvm-clock: if the host says that the guests' TSCs are in step, which is
//     usual (arch/x86/kernel/kvmclock.c, PVCLOCK_TSC_STABLE_BIT).
//   - hyperv_clocksource_tsc_page: always; ..._msr: never (drivers/clocksource/hyperv_timer.c).
//   - xen: if the hypervisor says so by the same bit, which depends on its own
//     clocksource (arch/x86/xen/time.c, xen_setup_vsyscall_time_info).
//   - arch_sys_counter, riscv_clocksource, timebase, tod, const_clocksource: the
//     other architectures' counters; on arm64 unless a CPU's erratum forbids it
//     (drivers/clocksource/arm_arch_timer.c).
//   - hpet, acpi_pm, pit, jiffies: never.
func vdsoOf(name string) Served {
	switch name {
	case "tsc", "tsc-early", "kvm-clock", "hyperv_clocksource_tsc_page",
		"arch_sys_counter", "riscv_clocksource", "timebase", "tod", "const_clocksource", "Constant":
		return ServedYes
	case "xen":
		return ServedMaybe
	case "hpet", "acpi_pm", "pit", "jiffies", "refined-jiffies", "hyperv_clocksource_msr":
		return ServedNo
	}
	return ServedUnknown
}

// servedHere is vdsoOf with what the kernel's log and parameters say of this machine.
func servedHere(name string, log *hostfs.Log, p hostfs.Parameters) Served {
	switch name {
	case "kvm-clock":
		if len(p.Values("no-kvmclock-vsyscall")) > 0 {
			return ServedNo
		}
		// Printed at start, if and only if the host says that the TSCs are in step.
		// Kernels before 4.4 do not print it.
		if _, stable := hasLine(log, "kvm-clock: using sched offset"); log.Whole && !stable && !bootedBefore(log, 4, 4) {
			return ServedNo
		}
	case "xen":
		// "VCLOCK_PVCLOCK" before Linux 5.7.
		if _, no := hasLine(log, "xen:", "CLOCK", "PVCLOCK not supported"); no {
			return ServedNo
		}
	case "arch_sys_counter":
		// The errata whose workaround reads the counter more than once.
		for _, erratum := range []string{"Freescale erratum", "HiSilicon erratum", "ARM erratum 858921", "Allwinner erratum"} {
			if _, no := hasLine(log, "arch_timer:", "workaround for "+erratum); no {
				return ServedNo
			}
		}
	}
	return vdsoOf(name)
}

// bootedBefore reports whether the log is of a kernel known to be before a version.
func bootedBefore(log *hostfs.Log, major, minor int) bool {
	l, ok := hasLine(log, "Linux version ")
	_, release, _ := strings.Cut(l.Text, "Linux version ")
	return ok && olderThan(release, major, minor)
}

// A ClocksourceChange is the kernel taking its time from something else.
type ClocksourceChange struct {
	At time.Duration `json:"at_ns"` // since the machine started; -1: the log does not say
	To string        `json:"to"`
}

// A Distrust is the kernel's reason not to use a clocksource.
type Distrust struct {
	Clocksource string        `json:"clocksource"`
	At          time.Duration `json:"at_ns"` // since the machine started; -1: the log does not say
	Kind        DistrustKind  `json:"kind"`
	Reason      string        `json:"reason"` // in the kernel's words
	// Skew is how much more time than the Watchdog it counted in Interval, where
	// the kernel says so.
	Skew     time.Duration `json:"skew_ns,omitempty"`
	Interval time.Duration `json:"interval_ns,omitempty"`
	Watchdog string        `json:"watchdog,omitempty"`
	Lines    []string      `json:"lines"` // of the kernel's log
}

// DistrustKind sorts the kernel's reasons by what can be done about them.
type DistrustKind string

const (
	DistrustSkew       DistrustKind = "skew"       // another clock ran differently
	DistrustReadBack   DistrustKind = "read-back"  // something held up the comparison itself
	DistrustWarp       DistrustKind = "warp"       // CPUs do not agree
	DistrustIdle       DistrustKind = "idle"       // it stops in idle states
	DistrustFrequency  DistrustKind = "frequency"  // its rate changes with the CPU's
	DistrustChosen     DistrustKind = "chosen"     // by a boot parameter
	DistrustHypervisor DistrustKind = "hypervisor" // on a hypervisor with a clock of its own
	DistrustOther      DistrustKind = "other"
)

// readChanges finds the changes of clocksource in the log.
func readChanges(log *hostfs.Log) []ClocksourceChange {
	var changes []ClocksourceChange
	for _, l := range log.Lines {
		// "clocksource: Switched ..."; "Switched ..." or "Switching ..." before 4.1.
		_, to, ok := strings.Cut(l.Text, "Switched to clocksource ")
		if !ok {
			_, to, ok = strings.Cut(l.Text, "Switching to clocksource ")
		}
		if ok {
			changes = append(changes, ClocksourceChange{l.At, strings.TrimSpace(to)})
		}
	}
	return changes
}

// readDistrust finds the first clocksource that the kernel gave up since the
// machine started, and why; nil if none.
func readDistrust(log *hostfs.Log) *Distrust {
	var d *Distrust
	say := func(l hostfs.LogLine, clocksource string, kind DistrustKind, reason string) {
		if d == nil {
			d = &Distrust{Clocksource: clocksource, At: l.At, Kind: kind, Reason: reason}
		}
		// A consequence that the kernel states after the cause adds nothing but its line.
		d.Lines = append(d.Lines, l.String())
	}
	const most = 8 // lines that belong to one event
	for _, l := range log.Lines {
		if d != nil && len(d.Lines) >= most {
			break
		}
		text := l.Text
		if name, ok := enclosed(text, "Marking clocksource '", "'"); ok {
			say(l, name, DistrustSkew, "the skew is too large")
		} else if strings.Contains(text, "read-back delay") && strings.Contains(text, "unstable") {
			name, ok := enclosed(text, "marking ", " unstable")
			if !ok {
				name = "tsc" // kernels before 5.17 do not name it
			}
			say(l, name, DistrustReadBack, "it took too long to read the clocks beside each other")
		} else if strings.Contains(text, "TSC warp between CPUs, turning off TSC clock") {
			say(l, "tsc", DistrustWarp, strings.TrimSpace(text))
		} else if _, reason, ok := strings.Cut(text, "Marking TSC unstable due to "); ok {
			say(l, "tsc", distrustKind(reason), reason)
		} else if name, ok := enclosed(text, "Clocksource ", " unstable (delta"); ok { // before 4.1
			say(l, name, DistrustSkew, "the skew is too large")
		} else if d != nil && d.Kind == DistrustSkew {
			d.figures(l)
		}
	}
	return d
}

// figures reads the lines that follow the verdict of the watchdog.
func (d *Distrust) figures(l hostfs.LogLine) {
	text := l.Text
	switch {
	case strings.Contains(text, " skewed ") && strings.Contains(text, " over watchdog "): // since 6.0
		skew, ok1 := number(text, "' skewed ")
		interval, ok2 := number(text, "' interval of ")
		if ok1 && ok2 {
			d.Skew, d.Interval = time.Duration(skew), time.Duration(interval)
		}
		d.Watchdog, _ = enclosed(text, "watchdog '", "'")
	case strings.Contains(text, " wd_now: "):
		d.Watchdog, _ = enclosed(text, "'", "'")
		if nsec, ok := number(text, " wd_nsec: "); ok { // since 5.13
			d.Interval = time.Duration(nsec)
		}
	case strings.Contains(text, " cs_now: "):
		if nsec, ok := number(text, " cs_nsec: "); ok && d.Interval != 0 {
			d.Skew = time.Duration(nsec) - d.Interval
		}
	default:
		return
	}
	d.Lines = append(d.Lines, l.String())
}

func distrustKind(reason string) DistrustKind {
	switch has := func(s string) bool { return strings.Contains(reason, s) }; {
	case has("boot parameter"):
		return DistrustChosen
	case has("halts in idle"):
		return DistrustIdle
	case has("cpufreq"):
		return DistrustFrequency
	case has("Hyper-V"):
		return DistrustHypervisor
	case has("sync"), has("backwards"):
		return DistrustWarp
	case has("watchdog"):
		return DistrustSkew
	}
	return DistrustOther
}

// better returns the first of the available clocksources that can be read without a
// system call, is not the current one, and that the kernel has not given up; "" if
// there is none.
func (d *ClocksourceData) better() string {
	i := slices.IndexFunc(d.Available, func(name string) bool {
		return name != d.Current && vdsoOf(name) == ServedYes && (d.Distrust == nil || d.Distrust.Clocksource != name)
	})
	if i < 0 {
		return ""
	}
	return d.Available[i]
}
