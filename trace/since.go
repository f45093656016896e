package trace

import "maps"

// Since returns what happened after an earlier snapshot of the same tracer: the
// counts are of the time between the two, and a process in which nothing happened
// is left out. States, such as Reason or GOMAXPROCS, are s's own, and so are the
// stacks of clock calls where no sample was taken between the two.
func (s *Snapshot) Since(earlier *Snapshot) *Snapshot {
	if earlier == nil {
		return s
	}
	d := *s
	d.Elapsed -= earlier.Elapsed
	d.Hooks = diff(s.Hooks, earlier.Hooks, func(h *Hook) string { return h.Feature + h.Name }, subtractHook)
	d.Kernel = some(diff(s.Kernel, earlier.Kernel, timerKey, subtractTimer), usedTimer)
	d.Processes = some(diff(s.Processes, earlier.Processes, func(p *Process) int { return p.PID }, subtractProcess), active)
	d.Dropped = maps.Clone(s.Dropped)
	for what, n := range earlier.Dropped {
		if d.Dropped[what] -= min(n, d.Dropped[what]); d.Dropped[what] == 0 {
			delete(d.Dropped, what)
		}
	}
	return &d
}

// diff returns a copy of now in which each element that was there earlier has had
// that subtracted.
func diff[T any, K comparable](now, earlier []T, key func(*T) K, subtract func(x, old *T)) []T {
	old := make(map[K]*T, len(earlier))
	for i := range earlier {
		old[key(&earlier[i])] = &earlier[i]
	}
	d := append([]T(nil), now...)
	for i := range d {
		if o := old[key(&d[i])]; o != nil {
			subtract(&d[i], o)
		}
	}
	return d
}

// some keeps the elements that hold; it overwrites x.
func some[T any](x []T, holds func(*T) bool) []T {
	kept := x[:0]
	for i := range x {
		if holds(&x[i]) {
			kept = append(kept, x[i])
		}
	}
	return kept
}

// less subtracts without going below zero: a process id may have been given to
// another process meanwhile.
func less[N uint64 | int64](n *N, earlier N) { *n -= min(earlier, *n) }

func lessHistogram(h **Histogram, earlier *Histogram) {
	if *h != nil && earlier != nil {
		d := (*h).Since(earlier)
		*h = &d
	}
}

func subtractHook(h, old *Hook) {
	less(&h.Runs, old.Runs)
	h.Time -= min(old.Time, h.Time)
}

func timerKey(u *TimerUse) string { return string(u.Kind) + "\x00" + u.Func }

func subtractTimer(u, old *TimerUse) {
	less(&u.Armed, old.Armed)
	less(&u.Expired, old.Expired)
	less(&u.Idle, old.Idle)
	less(&u.Woken, old.Woken)
	u.Asked -= min(old.Asked, u.Asked)
}

func usedTimer(u *TimerUse) bool { return u.Armed+u.Expired+u.Woken > 0 }

func clockKey(c *ClockCalls) [2]string { return [2]string{c.Call, c.Clock} }

func subtractCalls(c, old *ClockCalls) {
	less(&c.Count, old.Count)
	less(&c.Sampled, old.Sampled)
	lessHistogram(&c.Took, old.Took)
	if s := some(diff(c.Stacks, old.Stacks, stackKey, subtractStack), usedStack); len(s) > 0 {
		c.Stacks = s
	}
}

func stackKey(s *Stack) string {
	b := make([]byte, 0, 8*len(s.Frames))
	for _, f := range s.Frames {
		for shift := 0; shift < 64; shift += 8 {
			b = append(b, byte(f.PC>>shift))
		}
	}
	return string(b)
}

func subtractStack(s, old *Stack) { less(&s.Count, old.Count) }
func usedStack(s *Stack) bool     { return s.Count > 0 }

func subtractLateness(l, old *Lateness) {
	l.Slack = l.Slack.Since(&old.Slack)
	l.Interrupt = l.Interrupt.Since(&old.Interrupt)
	l.Wake = l.Wake.Since(&old.Wake)
	l.Throttled = l.Throttled.Since(&old.Throttled)
	l.RunQueue = l.RunQueue.Since(&old.RunQueue)
	l.Total = l.Total.Since(&old.Total)
}

func subtractProcess(p, old *Process) {
	p.CPU -= min(old.CPU, p.CPU)
	p.ClockCalls = some(diff(p.ClockCalls, old.ClockCalls, clockKey, subtractCalls), func(c *ClockCalls) bool { return c.Count > 0 })
	p.Timers = some(diff(p.Timers, old.Timers, timerKey, subtractTimer), usedTimer)
	p.Lateness = some(diff(p.Lateness, old.Lateness, func(l *Lateness) TimerKind { return l.Kind }, subtractLateness),
		func(l *Lateness) bool { return l.Total.Count > 0 })
	if p.Wait != nil && old.Wait != nil {
		p.Wait = &Wait{p.Wait.Throttled.Since(&old.Wait.Throttled), p.Wait.RunQueue.Since(&old.Wait.RunQueue)}
	}
	if p.Quota != nil && old.Quota != nil && p.Quota.Path == old.Quota.Path {
		q := *p.Quota
		less(&q.Periods, old.Quota.Periods)
		less(&q.Throttles, old.Quota.Throttles)
		q.Throttled -= min(old.Quota.Throttled, q.Throttled)
		p.Quota = &q
	}
	if p.Go != nil && old.Go != nil {
		g := *p.Go
		g.Latency = g.Latency.Since(&old.Go.Latency)
		p.Go = &g
	}
	if p.Profile != nil && old.Profile != nil {
		f := *p.Profile
		less(&f.User, old.Profile.User)
		less(&f.VDSO, old.Profile.VDSO)
		less(&f.ClockCall, old.Profile.ClockCall)
		less(&f.Kernel, old.Profile.Kernel)
		f.Stacks = some(diff(f.Stacks, old.Profile.Stacks, stackKey, subtractStack), usedStack)
		p.Profile = &f
	}
	lessHistogram(&p.GoTimers, old.GoTimers)
}

// active says that a process has done something that is watched.
func active(p *Process) bool {
	return p.CPU > 0 || len(p.ClockCalls) > 0 || len(p.Timers) > 0 || len(p.Lateness) > 0 ||
		p.Wait != nil && p.Wait.RunQueue.Count > 0
}
