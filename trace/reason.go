package trace

import (
	"fmt"
	"path"
	"strings"

	"github.com/detent-go/detent/trace/internal/proc"
)

// A Reason is why a process makes a system call for a reading of a clock that it
// could do without.
type Reason string

// The reasons.
const (
	// ReasonClock: no vDSO serves this clock; a program that reads the CPU time
	// of a thread, say, always asks the kernel.
	ReasonClock Reason = "clock-not-on-vdso"
	// ReasonClocksource: the vDSO itself asks the kernel, because the kernel's
	// clocksource cannot be read by programs. All processes suffer from it.
	ReasonClocksource Reason = "clocksource-without-vdso-mode"
	// ReasonOldVDSO: the vDSO asks the kernel for this clock, and serves others.
	ReasonOldVDSO Reason = "clock-not-on-this-vdso"
	// ReasonNoVDSO: the kernel has given the process no vDSO.
	ReasonNoVDSO Reason = "no-vdso"
	// ReasonHidden: the kernel has given it one, but the program has not found
	// it: something between the two took it out of the auxiliary vector, as
	// tracers and sandboxes do.
	ReasonHidden Reason = "vdso-hidden"
	// ReasonUnusable: the program found a vDSO and its runtime does not use it,
	// because what it looks for is not there.
	ReasonUnusable Reason = "vdso-unusable"
	// ReasonDirect: the program makes the system call itself, by
	// golang.org/x/sys/unix or syscall(2), although it has a vDSO.
	ReasonDirect Reason = "direct-call"
	// ReasonUnknown: not enough could be seen.
	ReasonUnknown Reason = "unknown"
)

// bypass is what the reason is concluded from.
type bypass struct {
	clock int
	// Whose instruction made the system call, as a symbol and a file; both ""
	// where no sample has been taken or the process has ended.
	caller Frame
	// process is nil if it has ended before it could be looked at.
	process      *proc.Process
	clocksource  string
	fallsBackFor map[int]bool // clocks for which the vDSO itself asks the kernel
}

// judge concludes why.
func (b *bypass) judge() (Reason, []Evidence) {
	ev := b.evidence()
	switch {
	case !onVDSO(b.clock):
		return ReasonClock, ev
	case b.caller.Object == "[vdso]":
		// It serves the coarse clocks whatever the clocksource, and had it no
		// mode, it would ask for the ordinary ones as well.
		if b.fallsBackFor[0] || b.fallsBackFor[1] {
			return ReasonClocksource, ev
		}
		return ReasonOldVDSO, ev
	case b.process == nil:
		return ReasonUnknown, ev
	}
	given, knowsGiven := has(b.process.Aux)
	found, knowsFound := has(b.process.Found)
	switch {
	case knowsGiven && !given:
		return ReasonNoVDSO, ev
	case knowsFound && !found && given:
		return ReasonHidden, ev
	case b.caller.Func == "":
		return ReasonUnknown, ev
	case isRuntime(b.caller) && knowsFound:
		return ReasonUnusable, ev
	case isRuntime(b.caller):
		return ReasonUnknown, ev
	}
	return ReasonDirect, ev
}

// has says whether a vDSO is in the vector.
func has(aux map[uint64]uint64) (has, known bool) {
	return aux[proc.SysinfoEHDR] != 0, aux != nil
}

// isRuntime says that the function is one which reads the clock by the vDSO where
// there is one, so that its asking the kernel is a fallback.
func isRuntime(f Frame) bool {
	switch strings.TrimSuffix(f.Func, ".abi0") {
	case "runtime.nanotime1", "runtime.walltime", "time.now", "runtime.nanotime":
		return true
	case "clock_gettime", "__clock_gettime", "__clock_gettime64", "__clock_gettime_2", "gettimeofday", "__gettimeofday", "time":
		base := path.Base(f.Object)
		return strings.HasPrefix(base, "libc") || strings.HasPrefix(base, "ld-") || !strings.Contains(base, ".so")
	}
	return false
}

func (b *bypass) evidence() []Evidence {
	var ev []Evidence
	add := func(name, value, source string) { ev = append(ev, Evidence{name, value, source}) }
	if !onVDSO(b.clock) {
		add("clock", fmt.Sprintf("%s (%d): system calls always", ClockName(b.clock), b.clock), "vdso(7)")
	}
	if b.caller.Object != "" {
		name := b.caller.Func
		if name == "" {
			name = fmt.Sprintf("%#x", b.caller.PC)
		}
		add("calling instruction", name+" in "+b.caller.Object, "sampled stacks")
	}
	if b.clocksource != "" {
		add("clocksource", b.clocksource, "/sys/devices/system/clocksource/clocksource0/current_clocksource")
	}
	p := b.process
	if p == nil {
		return ev
	}
	file := func(name string) string { return fmt.Sprintf("/proc/%d/%s", p.PID, name) }
	word := func(has bool) string {
		if has {
			return "there"
		}
		return "missing"
	}
	if is, known := has(p.Aux); known {
		add("AT_SYSINFO_EHDR, as the kernel gave it", word(is), file("auxv"))
	}
	if is, known := has(p.Found); known {
		add("AT_SYSINFO_EHDR, as the program found it", word(is), "its stack, "+file("mem"))
	}
	if p.Maps != nil {
		add("vDSO", map[bool]string{true: "mapped", false: "not mapped"}[p.Named("[vdso]") != nil], file("maps"))
	}
	if p.Tracer != 0 {
		add("traced by", fmt.Sprintf("process %d, which can stop each system call", p.Tracer), file("status"))
	}
	switch p.Seccomp {
	case 1, 2:
		add("seccomp", "each system call is filtered, which makes it dearer", file("status"))
	}
	if p.KnowsTimeNS && p.TimeNS {
		add("time namespace", "its own; the vDSO serves it still", file("ns/time"))
	}
	return ev
}
