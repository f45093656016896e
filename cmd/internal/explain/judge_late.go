package explain

import (
	"fmt"
	"math"
	"path"
	"time"

	"github.com/detent-go/detent/cmd/internal/watch"
	"github.com/detent-go/detent/probe"
	"github.com/detent-go/detent/trace"
)

// judgeThrottling: its cgroup's CPU quota stops it.
func judgeThrottling(f *Facts) []probe.Finding {
	q, w := f.Process.Quota, f.Process.Wait
	if q == nil || q.Throttles == 0 {
		return judgeUnseenQuota(f)
	}
	share := 0.0
	if q.Periods > 0 {
		share = min(float64(q.Throttles)/float64(q.Periods), 1)
	}
	severity := probe.Notice
	switch {
	case share >= 0.5:
		severity = probe.Critical
	case share >= 0.1:
		severity = probe.Warning
	}
	ev := []probe.Evidence{
		{Name: "quota", Value: fmt.Sprintf("%s of CPU time every %s: %.2f CPUs", watch.Duration(q.Quota), watch.Duration(q.Period), q.CPUs()), Source: q.Path},
		{Name: "throttled", Value: fmt.Sprintf("in %d of %d periods, for %s in all", q.Throttles, q.Periods, watch.Duration(q.Throttled)), Source: q.Path + "/cpu.stat"},
	}
	if w != nil && w.Throttled.Sum > 0 {
		ev = append(ev, probe.Evidence{
			Name: "its threads stood still", Value: fmt.Sprintf("%s in %s, up to %s at a time", watch.Duration(w.Throttled.Sum), watch.Duration(f.Elapsed), watch.Duration(w.Throttled.Max)),
			Source: "eBPF, tp_btf/sched_switch",
		})
	}
	d := f.demand()
	ev = append(ev, probe.Evidence{
		Name: "it wanted", Value: fmt.Sprintf("%.2f CPUs: ran on %.2f, throttled %.2f, waiting for others %.2f", d.total(), d.running, d.throttled, d.waiting),
		Source: "eBPF and /proc/PID/stat",
	})
	ev = append(ev, latenessEvidence(f)...)
	want := max(d.total(), q.CPUs()) * 1.2
	remedy := []string{
		fmt.Sprintf("give the cgroup more: %s; in Kubernetes the container's resources.limits.cpu, or none", setQuota(q, want)),
		"or let it want less: fewer threads that compute at once (GOMAXPROCS; from Go 1.25 on it follows the quota by itself)",
	}
	return []probe.Finding{{
		ID: "explain.throttled", Severity: severity, Confidence: probe.Certain,
		Title:    fmt.Sprintf("its CPU quota of %.2f CPUs is used up in %.0f%% of the periods: all its threads stand still for the rest of each", q.CPUs(), 100*share),
		Detail:   "Whatever is due while the cgroup is throttled is late, however precise the timer, and other processes of the cgroup use up the same quota.",
		Evidence: ev, Remedy: remedy,
	}}
}

// judgeUnseenQuota: its threads are throttled, and by which cgroup cannot be seen: in a
// container those of others are hidden.
func judgeUnseenQuota(f *Facts) []probe.Finding {
	w, d := f.Process.Wait, f.demand()
	if w == nil || d.throttled <= 0 || d.total() <= 0 {
		return nil
	}
	share := d.throttled / d.total()
	severity := probe.Notice
	switch {
	case share >= 0.5:
		severity = probe.Critical
	case share >= 0.1:
		severity = probe.Warning
	}
	return []probe.Finding{{
		ID: "explain.throttled", Severity: severity, Confidence: probe.Certain,
		Title:  fmt.Sprintf("the CPU quota of a cgroup that it is in is used up: its threads stand still for %s of the time that they want to run", percent(share)),
		Detail: "Whatever is due while the cgroup is throttled is late, however precise the timer. Which cgroup's quota it is cannot be seen from here, as from a container.",
		Evidence: append([]probe.Evidence{
			{Name: "its threads stood still", Value: fmt.Sprintf("%s in %s, up to %s at a time", watch.Duration(w.Throttled.Sum), watch.Duration(f.Elapsed), watch.Duration(w.Throttled.Max)), Source: "eBPF, tp_btf/sched_switch"},
			{Name: "it wanted", Value: fmt.Sprintf("%.2f CPUs: ran on %.2f, throttled %.2f, waiting for others %.2f", d.total(), d.running, d.throttled, d.waiting), Source: "eBPF and /proc/PID/stat"},
		}, latenessEvidence(f)...),
		Remedy: []string{
			"give its cgroup more: in Kubernetes the container's resources.limits.cpu, or none; else systemctl set-property UNIT CPUQuota=, or cpu.max on the host",
			"or let it want less: fewer threads that compute at once (GOMAXPROCS; from Go 1.25 on it follows the quota by itself)",
		},
	}}
}

// setQuota is the command that allows so many CPUs.
func setQuota(q *trace.Quota, cpus float64) string {
	us := int64(math.Ceil(cpus * float64(q.Period.Microseconds())))
	if path.Base(q.File) == "cpu.max" {
		return fmt.Sprintf("echo '%d %d' > %s", us, q.Period.Microseconds(), q.File)
	}
	return fmt.Sprintf("echo %d > %s", us, q.File)
}

// busy is the share of the Ps' time from which on there is none to spare.
const busy = 0.8

// lateGo is the mean lateness of Go's timers that an idle scheduler never has: it
// waits in whole milliseconds at worst.
const lateGo = 2 * time.Millisecond

// judgeScheduler: a Go program has more to run than Ps.
func judgeScheduler(f *Facts) []probe.Finding {
	p := &f.Process
	d := f.demand()
	// One that is throttled cannot but be late; whether it would have Ps enough
	// is not to be seen then.
	if !f.isGo() || d.throttled > d.total()/3 {
		return nil
	}
	procs := 1.0 // if unknown: at least one is busy all the time
	confidence := probe.Likely
	if p.Go != nil && p.Go.GOMAXPROCS > 0 {
		procs, confidence = float64(p.Go.GOMAXPROCS), probe.Certain
	}
	if d.total() < busy*procs {
		return nil
	}
	var late, waited time.Duration
	if h := p.GoTimers; h != nil && h.Count >= 10 {
		late = h.Mean()
	}
	if p.Go != nil && p.Go.Latency.Count >= 10 {
		waited = p.Go.Latency.Quantile(0.9)
	}
	if late < lateGo && waited < 2*lateGo {
		return nil
	}
	severity := probe.Warning
	if late >= 50*time.Millisecond || waited >= 100*time.Millisecond {
		severity = probe.Critical
	}
	var ev []probe.Evidence
	add := func(name, value, source string) {
		ev = append(ev, probe.Evidence{Name: name, Value: value, Source: source})
	}
	if h := p.GoTimers; h != nil && h.Count > 0 {
		add("Go's timers are late, by the runtime's own clock", fmt.Sprintf("mean %s, 99%% %s, of %d", watch.Duration(h.Mean()), watch.AtMost(h.Quantile(0.99)), h.Count), "uprobes on the runtime's timer functions")
	}
	if g := p.Go; g != nil && g.Latency.Count > 0 {
		add("goroutines wait for a P before they run", fmt.Sprintf("median %s, 99%% %s", watch.AtMost(g.Latency.Quantile(0.5)), watch.AtMost(g.Latency.Quantile(0.99))), "the runtime's own histogram, /sched/latencies")
		add("Ps", fmt.Sprintf("%d, of which %d idle, %d goroutines in the global queue", g.GOMAXPROCS, g.IdlePs, g.Queued), "the runtime's memory")
	}
	add("it wanted", fmt.Sprintf("%.2f CPUs: ran on %.2f, waiting for others %.2f", d.total(), d.running, d.waiting), "eBPF and /proc/PID/stat")
	ev = append(ev, latenessEvidence(f)...)
	return []probe.Finding{{
		ID: "explain.go-saturated", Severity: severity, Confidence: confidence,
		Title:    "its Go scheduler is saturated: " + saturation(late, waited),
		Detail:   "All Ps compute all the time. The scheduler looks at timers when a goroutine gives its P away, or is made to after 10 ms, and what is due runs behind the goroutines that wait already. The kernel wakes the threads in time.",
		Evidence: ev,
		Remedy: []string{
			"give it more Ps if there are CPUs for them: raise GOMAXPROCS, or the quota that it follows",
			"let fewer goroutines compute at once: a limit on workers below GOMAXPROCS leaves a P for what is due",
			"what has to be on time: a lane of github.com/detent-go/detent/timer, which runs its callbacks on a thread of its own, past the Go scheduler",
		},
	}}
}

// saturation says what is noticed of it.
func saturation(late, waited time.Duration) string {
	if late >= lateGo {
		return fmt.Sprintf("timers wait for a P, %s on average", watch.Duration(late))
	}
	return fmt.Sprintf("one goroutine in ten waits for a P for up to %s", watch.Duration(waited))
}

// judgeContention: other threads have the CPUs.
func judgeContention(f *Facts) []probe.Finding {
	w, d := f.Process.Wait, f.demand()
	if w == nil || w.RunQueue.Count == 0 {
		return nil
	}
	l := f.kernelLateness()
	part := 0.0
	if d.total() > 0 {
		part = d.waiting / d.total()
	}
	long := w.RunQueue.Quantile(0.99)
	if part < 0.2 || long < 2*time.Millisecond {
		return nil
	}
	severity := probe.Notice
	if part >= 0.5 || l.Total.Count > 0 && l.RunQueue.Quantile(0.99) >= 10*time.Millisecond {
		severity = probe.Warning
	}
	x := probe.Finding{
		ID: "explain.cpu-contention", Severity: severity, Confidence: probe.Certain,
		Title:  fmt.Sprintf("its threads wait for a CPU for %s of the time that they want to run: others have it", percent(part)),
		Detail: "The threads are runnable, and other threads, of this process or of others, are on the CPUs. Whatever is due meanwhile is late.",
		Evidence: append([]probe.Evidence{
			{Name: "waits for a CPU", Value: fmt.Sprintf("%d: median %s, 99%% %s, longest %s", w.RunQueue.Count, watch.AtMost(w.RunQueue.Quantile(0.5)), watch.AtMost(long), watch.Duration(w.RunQueue.Max)), Source: "eBPF, tp_btf/sched_switch"},
			{Name: "it wanted", Value: fmt.Sprintf("%.2f CPUs: ran on %.2f, waiting for others %.2f", d.total(), d.running, d.waiting), Source: "eBPF and /proc/PID/stat"},
		}, latenessEvidence(f)...),
		Remedy: []string{
			fmt.Sprintf("see who has the CPUs: detent trace --late 5ms %d names what ran before each late thread; top, or pidstat -u 1", f.Process.PID),
			"give this process more weight (nice -n -5, cpu.weight of its cgroup), CPUs of its own (taskset, cpuset), or take the others elsewhere",
		},
	}
	if m := f.finding("cpu.pressure", "cpu.steal"); m != nil {
		x.Because = m.ID
	}
	return []probe.Finding{x}
}

// judgeInterrupts: timers' interrupts come late.
func judgeInterrupts(f *Facts) []probe.Finding {
	l := f.kernelLateness()
	if l.Interrupt.Count < 100 || l.Interrupt.Quantile(0.95) < time.Millisecond {
		return nil
	}
	x := probe.Finding{
		ID: "explain.late-interrupts", Severity: probe.Warning, Confidence: probe.Certain,
		Title:    fmt.Sprintf("the kernel runs its timers late: one in twenty by %s or more", watch.Duration(l.Interrupt.Quantile(0.95)/2)),
		Detail:   "From a timer's expiry until the kernel runs it there is only the interrupt. It comes late where interrupts are off for long, where a CPU has to leave a deep idle state, and on a virtual machine where the host has given the CPU to others.",
		Evidence: latenessEvidence(f),
		Remedy: []string{
			"on a virtual machine: look at steal time (detent doctor), and ask for CPUs of its own",
			"on the machine itself: look for long interrupts in dmesg, and at idle states with long exit latencies (detent doctor)",
		},
	}
	if m := f.finding("cpu.steal", "idle.exit-latency"); m != nil {
		x.Because = m.ID
	}
	return []probe.Finding{x}
}

// judgeSlack: the kernel has been allowed to be late by more than the usual 50 us.
func judgeSlack(f *Facts) []probe.Finding {
	var found []probe.Finding
	for _, l := range f.Process.Lateness {
		// epoll, poll and select allow themselves a thousandth of long waits.
		if l.Kind != trace.KindNanosleep && l.Kind != trace.KindFutex {
			continue
		}
		if l.Slack.Count < 20 || l.Slack.Quantile(0.5) < time.Millisecond {
			continue
		}
		found = append(found, probe.Finding{
			ID: "explain.timer-slack", Severity: probe.Warning, Confidence: probe.Certain,
			Title:    fmt.Sprintf("its threads allow the kernel to wake them late, by %s", watch.Duration(l.Slack.Mean())),
			Detail:   "A thread's timer slack lets the kernel wait for another timer to share an interrupt with. The usual value is 50 us.",
			Evidence: latenessEvidence(f),
			Remedy:   []string{fmt.Sprintf("set it back: for t in /proc/%d/task/*; do echo 50000 > $t/timerslack_ns; done, or prctl(PR_SET_TIMERSLACK, 50000) in each thread", f.Process.PID)},
		})
		break
	}
	return found
}

// judgeFloor: package time's timers are late by a part of a millisecond, as they
// are wherever the Go scheduler is idle.
func judgeFloor(f *Facts) []probe.Finding {
	h := f.Process.GoTimers
	if h == nil || h.Count < 20 || h.Mean() < 200*time.Microsecond || h.Mean() >= lateGo {
		return nil
	}
	// What the kernel adds to it is not package time's.
	if l := f.kernelLateness(); 2*l.Total.Mean() > h.Mean() {
		return nil
	}
	return []probe.Finding{{
		ID: "explain.package-time", Severity: probe.Info, Confidence: probe.Certain,
		Title:    fmt.Sprintf("its timers of package time are late by %s on average, as they are by design", watch.Duration(h.Mean())),
		Detail:   "An idle Go scheduler waits in whole milliseconds. Most programs do not mind.",
		Evidence: []probe.Evidence{{Name: "Go's timers, by the runtime's own clock", Value: fmt.Sprintf("median %s, 99%% %s, of %d", watch.AtMost(h.Quantile(0.5)), watch.AtMost(h.Quantile(0.99)), h.Count), Source: "uprobes on the runtime's timer functions"}},
		Remedy:   []string{"where tens of microseconds matter: github.com/detent-go/detent/timer, with package time's names"},
	}}
}

// latenessEvidence is where the lateness of the kernel's part went.
func latenessEvidence(f *Facts) []probe.Evidence {
	l := f.kernelLateness()
	if l.Total.Count == 0 {
		return nil
	}
	return []probe.Evidence{{
		Name: "the kernel's part of its timers' lateness",
		Value: fmt.Sprintf("mean %s: slack %s, interrupt %s, waking %s, throttled %s, run queue %s; 99%% %s, of %d",
			watch.Duration(l.Total.Mean()), watch.Duration(l.Slack.Mean()), watch.Duration(l.Interrupt.Mean()), watch.Duration(l.Wake.Mean()),
			watch.Duration(l.Throttled.Mean()), watch.Duration(l.RunQueue.Mean()), watch.AtMost(l.Total.Quantile(0.99)), l.Total.Count),
		Source: "eBPF, from hrtimer_expire_entry to sched_switch",
	}}
}
