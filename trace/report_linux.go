//go:build amd64 || arm64

package trace

import (
	"cmp"
	"io/fs"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/detent-go/detent/trace/internal/bpf"
)

const clocksourceFile = "sys/devices/system/clocksource/clocksource0/current_clocksource"

// Snapshot returns what has been seen by now. It takes some milliseconds for a
// thousand processes.
func (t *Tracer) Snapshot() (*Snapshot, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, errClosed
	}
	g, err := t.gatherLocked(all)
	if err != nil {
		return nil, err
	}
	s := &Snapshot{
		Taken:       time.Now(),
		Clocksource: t.clocksource(),
		Processes:   g.processes,
		Kernel:      g.kernel,
		Dropped:     t.droppedLocked(),
	}
	s.Elapsed = s.Taken.Sub(t.began)
	for _, p := range t.archive.processes {
		if !slices.ContainsFunc(s.Processes, func(l Process) bool { return l.PID == p.PID }) {
			s.Processes = append(s.Processes, p)
		}
	}
	slices.SortFunc(s.Processes, func(a, b Process) int { return cmp.Compare(a.PID, b.PID) })
	for _, h := range t.hooks {
		s.Hooks = append(s.Hooks, h.state())
	}
	s.Hooks = append(s.Hooks, t.notes...)
	return s, nil
}

func (t *Tracer) clocksource() string {
	b, err := fs.ReadFile(t.root, clocksourceFile)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// What the kernel's programs drop, in the order of their common.h.
var dropNames = []string{
	"clock calls: too many processes", "stacks: not kept", "timers: too many processes",
	"threads: too many", "lateness: too many processes", "events: not read in time",
	"children: too many", "profile: too many processes",
}

func (t *Tracer) droppedLocked() map[string]uint64 {
	d := maps.Clone(t.lost)
	m := t.maps[bpf.TraceMapDropped]
	if m == nil {
		return d
	}
	for i, name := range dropNames {
		var perCPU []uint64
		if err := m.Lookup(uint32(i), &perCPU); err != nil {
			continue
		}
		for _, n := range perCPU {
			if n > 0 {
				d[name] += n
			}
		}
	}
	return d
}

func duration(ns uint64) time.Duration { return time.Duration(min(ns, math.MaxInt64)) }

// processLocked makes a process's report. k is nil if the process has ended before
// anything was known of it.
func (t *Tracer) processLocked(pid int, k *known, r *raw) Process {
	p := Process{PID: pid, Comm: r.comm}
	if k != nil {
		p.Comm, p.Exe, p.Threads, p.CPU = k.Comm, k.Exe, k.Threads, k.CPU-k.began
	}
	p.ClockCalls = t.clockCallsLocked(k, r)
	p.Timers = t.timersLocked(r)
	t.latenessLocked(&p, r)
	if r.profile != nil {
		p.Profile = t.profileLocked(pid, r)
	}
	if r.goTimers != nil {
		p.GoTimers = histogram(r.goTimers)
	}
	if k == nil {
		return p
	}
	if !k.ended {
		// Of all the machine's processes, of those only that suffer from one.
		t.stateLocked(k, p.Wait != nil && p.Wait.Throttled.Sum > 0)
	}
	p.Quota, p.Go = k.lastQuota, k.lastGo
	return p
}

// stateLocked reads what is gone with a process. throttled says that it has suffered from
// a quota.
func (t *Tracer) stateLocked(k *known, throttled bool) {
	if !t.opts.everyone() || throttled {
		k.lastQuota = t.quotaLocked(k)
	}
	if t.opts.Features&WatchGoScheduler == 0 || t.opts.everyone() {
		return
	}
	// A process that is ending has no memory any more.
	if g := t.goLocked(k); g == nil || g.Absent == "" || k.lastGo == nil {
		k.lastGo = g
	}
}

var callNames = []string{"clock_gettime", "gettimeofday", "time"}

func (t *Tracer) clockCallsLocked(k *known, r *raw) []ClockCalls {
	// For which clocks is it the vDSO that asks the kernel?
	fallsBack := make(map[int]bool)
	callers := make(map[bpf.TraceClockKey]Frame)
	for key, use := range r.clocks {
		if k == nil || use.Ip == 0 {
			continue
		}
		// The address is of the next instruction: the call is the one before.
		f := t.frameLocked(k, use.Ip-1)
		callers[key] = f
		if f.Object == "[vdso]" {
			fallsBack[clockOf(key)] = true
		}
	}
	if k != nil && len(r.clocks) > 0 {
		t.findLocked(k)
	}
	var calls []ClockCalls
	for key, use := range r.clocks {
		c := ClockCalls{
			Call: callNames[key.Call], ID: clockOf(key), Clock: ClockName(clockOf(key)),
			Count: use.Count, Sampled: use.Sampled,
		}
		b := bypass{clock: c.ID, caller: callers[key], clocksource: t.clocksource(), fallsBackFor: fallsBack}
		if k != nil {
			b.process = k.Process
		}
		c.Reason, c.Evidence = b.judge()
		if h := r.times[key]; h != nil {
			c.Took = histogram(h)
		}
		if sampled := t.stacks[int(key.Tgid)]; sampled != nil {
			c.Stacks = reported(sampled.clocks[key])
		}
		if k != nil {
			t.addCallerLocked(k, &c, use.Ret)
		}
		calls = append(calls, c)
	}
	slices.SortFunc(calls, func(a, b ClockCalls) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Call, b.Call))
	})
	return calls
}

// addCallerLocked completes stacks of programs without frame pointers, which end at
// the function that made the call, by where that would return to.
func (t *Tracer) addCallerLocked(k *known, c *ClockCalls, ret uint64) {
	t.detailLocked(k)
	m := k.At(ret)
	if m == nil || !m.Exec {
		return
	}
	for i := range c.Stacks {
		if s := &c.Stacks[i]; len(s.Frames) == 1 && s.Frames[0].Object != "[vdso]" {
			s.Frames = append(slices.Clip(s.Frames), t.stackLocked(k, []uint64{s.Frames[0].PC, ret})[1])
		}
	}
}

// clockOf is the clock that a call reads; gettimeofday and time have the wall
// clock's id, 0.
func clockOf(key bpf.TraceClockKey) int { return int(key.Clock) }

func sortStacks(s []Stack) {
	slices.SortFunc(s, func(a, b Stack) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(stackKey(&a), stackKey(&b)))
	})
}

// kindOf translates a kind of the programs' timers.h.
func kindOf(kind uint32) TimerKind {
	switch bpf.TraceKind(kind) {
	case bpf.TraceKindKIND_TIMERFD:
		return KindTimerfd
	case bpf.TraceKindKIND_POSIX:
		return KindPOSIX
	case bpf.TraceKindKIND_ITIMER:
		return KindITimer
	case bpf.TraceKindKIND_KTHREAD:
		return KindKThread
	case bpf.TraceKindKIND_KERNEL:
		return KindKernel
	case bpf.TraceKindKIND_WHEEL_SLEEP:
		return KindWheelSleep
	case bpf.TraceKindKIND_WHEEL:
		return KindWheel
	}
	if k, ok := sleepingCalls[runtime.GOARCH][kind]; ok {
		return k
	}
	return KindSleep
}

// timersLocked joins the kinds of the programs, which are system calls, to those
// of the report.
func (t *Tracer) timersLocked(r *raw) []TimerUse {
	t.nameFunctionsLocked(r)
	uses := make(map[string]*TimerUse)
	for key, v := range r.timers {
		u := &TimerUse{Kind: kindOf(key.Kind), Func: t.kernel[key.Fn]}
		if old := uses[timerKey(u)]; old != nil {
			u = old
		}
		uses[timerKey(u)] = u
		u.Armed += v.Armed
		u.Expired += v.Expired
		u.Idle += v.ExpiredIdle
		u.Woken += v.Woken
		u.Asked += duration(v.Asked)
	}
	var list []TimerUse
	for _, u := range uses {
		list = append(list, *u)
	}
	slices.SortFunc(list, func(a, b TimerUse) int {
		return cmp.Or(cmp.Compare(b.Expired, a.Expired), cmp.Compare(timerKey(&a), timerKey(&b)))
	})
	return list
}

// nameFunctionsLocked finds the names of the kernel's functions that are new in r,
// all at once: the list of symbols takes tens of milliseconds to read.
func (t *Tracer) nameFunctionsLocked(r *raw) {
	unknown := false
	for key := range r.timers {
		if _, ok := t.kernel[key.Fn]; key.Fn != 0 && !ok {
			t.kernel[key.Fn] = ""
			unknown = true
		}
	}
	if !unknown {
		return
	}
	_ = nameFunctions(t.root, t.kernel) // they stay unknown then
	for addr, name := range t.kernel {
		if name == "" {
			t.kernel[addr] = "unknown"
		}
	}
}

func (t *Tracer) latenessLocked(p *Process, r *raw) {
	byKind := make(map[TimerKind]*Lateness)
	for kind, v := range r.lateness {
		part := func(i bpf.TracePart) *Histogram { return histogram(&v.Part[i]) }
		if bpf.TraceKind(kind) == bpf.TraceKindKIND_ANY {
			p.Wait = &Wait{*part(bpf.TracePartPART_THROTTLED), *part(bpf.TracePartPART_RUNQUEUE)}
			continue
		}
		l := byKind[kindOf(kind)]
		if l == nil {
			l = &Lateness{Kind: kindOf(kind)}
			byKind[l.Kind] = l
		}
		l.Slack.Add(part(bpf.TracePartPART_SLACK))
		l.Interrupt.Add(part(bpf.TracePartPART_INTERRUPT))
		l.Wake.Add(part(bpf.TracePartPART_WAKE))
		l.Throttled.Add(part(bpf.TracePartPART_THROTTLED))
		l.RunQueue.Add(part(bpf.TracePartPART_RUNQUEUE))
		l.Total.Add(part(bpf.TracePartPART_TOTAL))
	}
	for _, l := range byKind {
		p.Lateness = append(p.Lateness, *l)
	}
	slices.SortFunc(p.Lateness, func(a, b Lateness) int {
		return cmp.Or(cmp.Compare(b.Total.Count, a.Total.Count), cmp.Compare(a.Kind, b.Kind))
	})
}

func (t *Tracer) profileLocked(pid int, r *raw) *CPUProfile {
	n := r.profile.Samples
	p := &CPUProfile{
		User: n[bpf.TraceWhereWHERE_USER], VDSO: n[bpf.TraceWhereWHERE_VDSO],
		ClockCall: n[bpf.TraceWhereWHERE_CLOCK_KERNEL], Kernel: n[bpf.TraceWhereWHERE_KERNEL],
	}
	if sampled := t.stacks[pid]; sampled != nil {
		p.Stacks = reported(sampled.profile)
	}
	return p
}
