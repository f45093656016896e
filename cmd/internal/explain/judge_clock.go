package explain

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/detent-go/detent/cmd/internal/watch"
	"github.com/detent-go/detent/probe"
	"github.com/detent-go/detent/trace"
)

// What system calls for the time have to take of a CPU to be worth a word. What is
// not the program's own choice is worth one however rarely it happens, if it
// happens more often than by chance.
const (
	loadCritical = 0.10
	loadWarning  = 0.01
	loadNotice   = 0.001
	byChance     = 5 // calls a second

	// Of the process's own CPU time, where that is worth a word at all.
	shareCritical = 0.3
	shareWarning  = 0.05
)

// clockSeverity weighs what the calls take of a CPU, and of the process's own time.
func clockSeverity(load, share float64) probe.Severity {
	switch {
	case load >= loadCritical, load >= loadWarning && share >= shareCritical:
		return probe.Critical
	case load >= loadWarning, load >= loadNotice && share >= shareWarning:
		return probe.Warning
	}
	return probe.Notice
}

// clockShare is the part of the process's CPU time that system calls for the time
// take: by samples of it, or else by what they should take.
func (f *Facts) clockShare(load float64) float64 {
	if p := f.Process.Profile; p != nil && p.Samples() >= 20 {
		return float64(p.ClockCall) / float64(p.Samples())
	}
	if running := f.demand().running; running > 0 {
		return min(load/running, 1)
	}
	return 0
}

// calls are those of one process for one reason.
type calls struct {
	reason trace.Reason
	list   []trace.ClockCalls
	rate   float64 // a second
	load   float64 // of one CPU
}

func (f *Facts) callsByReason() []calls {
	var groups []calls
	for _, c := range f.Process.ClockCalls {
		i := slices.IndexFunc(groups, func(g calls) bool { return g.reason == c.Reason })
		if i < 0 {
			i = len(groups)
			groups = append(groups, calls{reason: c.Reason})
		}
		g := &groups[i]
		g.list = append(g.list, c)
		g.rate += float64(c.Count) / f.Elapsed.Seconds()
		g.load += f.cpu(time.Duration(c.Count) * f.call())
	}
	slices.SortFunc(groups, func(a, b calls) int { return cmp.Compare(b.load, a.load) })
	return groups
}

func judgeClocks(f *Facts) []probe.Finding {
	var found []probe.Finding
	for _, g := range f.callsByReason() {
		if finding, ok := judgeCalls(f, g); ok {
			found = append(found, finding)
		}
	}
	return found
}

func judgeCalls(f *Facts, g calls) (probe.Finding, bool) {
	chosen := g.reason == trace.ReasonDirect || g.reason == trace.ReasonClock || g.reason == trace.ReasonUnknown
	if g.rate < byChance || chosen && g.load < loadNotice {
		return probe.Finding{}, false
	}
	severity := clockSeverity(g.load, f.clockShare(g.load))
	r := reading(g, f.Process.PID)
	x := probe.Finding{
		Severity: severity, Confidence: probe.Certain, Detail: r.detail,
		Title:    fmt.Sprintf("%s: %s a second, which takes %s of a CPU", r.title, plural(g), percent(g.load)),
		Evidence: clockEvidence(f, g),
		Remedy:   r.remedy,
	}
	x.ID = r.id
	switch g.reason {
	case trace.ReasonClocksource:
		if m := f.finding("clocksource.no-vdso", "clocksource.vdso-depends", "clocksource.tsc-unstable"); m != nil {
			x.Because = m.ID
		}
	case trace.ReasonNoVDSO:
		if m := f.finding("clocksource.vdso-disabled"); m != nil {
			x.Because = m.ID
		}
	case trace.ReasonClock:
		// No machine would spare it that: what it costs is the program's choice.
		x.Severity = min(x.Severity, probe.Warning)
	case trace.ReasonUnknown:
		x.Severity, x.Confidence = min(x.Severity, probe.Warning), probe.Possible
	}
	return x, true
}

// plural is the rate in words.
func plural(g calls) string {
	return watch.Rate(uint64(g.rate*1000), 1000*time.Second) + " system calls"
}

// A verdict is what one reason means.
type verdict struct {
	id, title, detail string
	remedy            []string
}

func reading(g calls, pid int) verdict {
	why := watch.Why(g.reason)
	detail := upper(why) + "."
	where := hottest(g)
	switch g.reason {
	case trace.ReasonDirect:
		v := verdict{"explain.direct-calls", "it makes its own system calls to read the clock", detail, nil}
		if where != "" {
			v.title += " in " + where
		}
		v.remedy = []string{
			"in Go: call time.Now or time.Since, or for another clock than these clock.Raw, clock.Boot, clock.TAI of github.com/detent-go/detent/clock, instead of unix.ClockGettime or syscall.Gettimeofday" + at(where),
			"in other languages: call clock_gettime of the C library instead of syscall(SYS_clock_gettime, ...)",
		}
		return v
	case trace.ReasonHidden:
		return verdict{
			"explain.vdso-hidden", "its clock readings are system calls: the vDSO is hidden from it", detail,
			[]string{
				fmt.Sprintf("look what starts it: grep -E 'PPid|TracerPid' /proc/%d/status", pid) + ": a tracer or recorder (rr), a sandbox (gVisor, proot), a checkpoint/restore tool or an emulator takes AT_SYSINFO_EHDR away",
				"start it without that, or tell that to leave the vDSO in place",
			},
		}
	case trace.ReasonNoVDSO:
		return verdict{
			"explain.no-vdso", "its clock readings are system calls: the kernel gave it no vDSO", detail,
			[]string{
				"look whether the kernel was started with vdso=0: grep -w vdso /proc/cmdline; if so remove it and reboot",
				"a 32-bit program needs vdso32=1, and a kernel that has it",
			},
		}
	case trace.ReasonUnusable:
		return verdict{
			"explain.vdso-unusable", "its clock readings are system calls: its runtime does not use the vDSO", detail,
			[]string{"build it with a current version of its language: what its runtime looks for in the vDSO is not there under that name"},
		}
	case trace.ReasonClocksource:
		return verdict{
			"explain.clocksource", "its clock readings are system calls, as those of every process: the clocksource cannot be read by programs", detail,
			[]string{"detent doctor says why the kernel uses this clocksource, and how to give it another"},
		}
	case trace.ReasonOldVDSO:
		return verdict{
			"explain.old-vdso", "it reads a clock that this kernel's vDSO does not serve", detail,
			[]string{"a newer kernel, or CLOCK_MONOTONIC where that will do"},
		}
	case trace.ReasonClock:
		return verdict{
			"explain.clock-not-on-vdso", "it reads a clock that is a system call on every machine", detail,
			[]string{"read it less often" + at(where) + "; CPU time advances with the work that is done, so once for each piece of work will do"},
		}
	}
	return verdict{"explain.unexplained-calls", "its clock readings are system calls", detail, []string{fmt.Sprintf("watch it while it runs, as root, and with its symbols: detent trace %d", pid)}}
}

func upper(s string) string {
	if s == "" {
		return s
	}
	return string(s[0]-'a'+'A') + s[1:]
}

func at(where string) string {
	if where == "" {
		return ""
	}
	return ", in " + where
}

// hottest is where most of the calls come from; "" if no symbol tells.
func hottest(g calls) string {
	var best trace.Stack
	for _, c := range g.list {
		if len(c.Stacks) > 0 && c.Stacks[0].Count > best.Count {
			best = c.Stacks[0]
		}
	}
	if frame, ok := watch.Caller(best); ok {
		return watch.Place(frame)
	}
	return ""
}

func clockEvidence(f *Facts, g calls) []probe.Evidence {
	const counted = "eBPF, tp_btf/sys_enter"
	var ev []probe.Evidence
	for _, c := range g.list {
		name := c.Clock
		if c.Call != "clock_gettime" {
			name = c.Call
		}
		ev = append(ev, probe.Evidence{Name: c.Call + ", " + name, Value: watch.Rate(c.Count, f.Elapsed) + " a second", Source: counted})
		if h := c.Took; h != nil && h.Count > 0 {
			ev = append(ev, probe.Evidence{
				Name:   "in the kernel alone",
				Value:  fmt.Sprintf("median %s, 99%% %s", watch.AtMost(h.Quantile(0.5)), watch.AtMost(h.Quantile(0.99))),
				Source: "eBPF, tp_btf/sys_exit",
			})
		}
	}
	if where := hottest(g); where != "" {
		ev = append(ev, probe.Evidence{Name: "most of them come from", Value: where, Source: "sampled stacks"})
	}
	if f.Cost.VDSO > 0 && f.Cost.Call > 0 {
		ev = append(ev, probe.Evidence{
			Name: "CLOCK_MONOTONIC here", Value: fmt.Sprintf("%s by the vDSO, %s by system call", watch.Duration(f.Cost.VDSO), watch.Duration(f.Cost.Call)),
			Source: "measured in another process on this machine",
		})
	}
	if p := f.Process.Profile; p != nil && p.Samples() > 0 {
		ev = append(ev, probe.Evidence{
			Name:   "of its CPU time, reading clocks",
			Value:  fmt.Sprintf("%.0f%% (%d of %d samples)", 100*p.ClockShare(), p.VDSO+p.ClockCall, p.Samples()),
			Source: "perf event cpu-clock",
		})
	}
	// The first group's evidence speaks for the reason.
	for _, e := range g.list[0].Evidence {
		ev = append(ev, probe.Evidence(e))
	}
	return ev
}
