package probe

import (
	"context"
	"fmt"
	"time"
)

// The check of what sleeps can be had. It has SleepData.
var sleepCheck = Check{
	Name:  "sleep",
	About: "how late short sleeps end, by the kernel's timers and by the engines, idle and while every P is busy",
	Budget: func(e *Env) time.Duration {
		o := sleepEffort(e.Effort)
		return o.Time * time.Duration(len(o.Loads)*len(ways()))
	},
	Run: func(ctx context.Context, e *Env) Result {
		if err := e.measurable(); err != nil {
			return Result{Err: err}
		}
		d, err := MeasureSleeps(ctx, sleepEffort(e.Effort))
		if d == nil {
			return Result{Err: err}
		}
		return Result{Err: err, Data: d, Findings: judgeSleep(d)}
	},
}

func sleepEffort(e Effort) SleepOptions {
	o := SleepOptions{Requested: 50 * time.Microsecond, Count: 2000, Time: 250 * time.Millisecond, Loads: []Load{Idle, Busy}}
	switch e {
	case Quick:
		o.Time, o.Loads = 80*time.Millisecond, []Load{Idle}
	case Thorough:
		o.Count, o.Time = 50_000, 6*time.Second
	}
	return o
}

const (
	// lateFloor is a lateness that even the best of the kernel's sleeps has on no
	// machine with high-resolution timers that wakes its CPUs as it should: the
	// deepest idle states take some 100 us to leave. tickFloor is that of timers
	// on the tick's grid.
	lateFloor = 250 * time.Microsecond
	tickFloor = 900 * time.Microsecond

	// fewSleeps are too few to conclude anything from their least lateness.
	fewSleeps = 20

	// coarseSleep is a median lateness of package time that is the netpoller's
	// whole milliseconds and not the kernel's.
	coarseSleep = 500 * time.Microsecond
)

// way returns the row of a way under a load; nil if it was not measured.
func (d *SleepData) way(name string, load Load) *SleepWay {
	for i := range d.Ways {
		if w := &d.Ways[i]; w.Name == name && w.Load == load && w.Lateness.Count > 0 {
			return w
		}
	}
	return nil
}

func lateEvidence(ways ...*SleepWay) []Evidence {
	var list []Evidence
	for _, w := range ways {
		if w == nil {
			continue
		}
		l := w.Lateness
		list = append(list, Evidence{
			"lateness, " + w.Name + ", " + string(w.Load),
			fmt.Sprintf("least %v, median %v, 99 %% %v", round(l.Min), round(l.P50), round(l.P99)),
			fmt.Sprintf("measured, %d sleeps", l.Count),
		})
	}
	return list
}

// round drops what nobody wants to read of a duration.
func round(d time.Duration) time.Duration {
	switch {
	case d >= 10*time.Millisecond:
		return d.Round(100 * time.Microsecond)
	case d >= time.Millisecond:
		return d.Round(10 * time.Microsecond)
	case d >= 10*time.Microsecond:
		return d.Round(time.Microsecond)
	}
	return d
}

func judgeSleep(d *SleepData) []Finding {
	var found []Finding
	for i := range d.Ways {
		if w := &d.Ways[i]; w.Early > 0 {
			found = append(found, Finding{
				ID: "sleep.early", Severity: Critical, Confidence: Certain,
				Title:    fmt.Sprintf("%s ended early: %d of %d sleeps, by up to %v", w.Name, w.Early, w.Lateness.Count, w.EarlyBy),
				Detail:   "A sleep lasts at least as long as it was asked for, by CLOCK_MONOTONIC: this is a defect, of the kernel's timers or its clock, or of the hypervisor's.",
				Evidence: append(lateEvidence(w), Evidence{"requested", d.Requested.String(), "measured"}),
				Remedy:   []string{"look for findings about clocks that step back or counters that are not in step: they explain it", "otherwise report it to whoever supplies the kernel, with this evidence"},
			})
		}
	}
	precise, timerfd := d.way(SleepPrecise, Idle), d.way(SleepTimerfd, Idle)
	best := precise
	if best == nil || timerfd != nil && timerfd.Lateness.Min < best.Lateness.Min {
		best = timerfd
	}
	if best != nil && best.Lateness.Count >= fewSleeps && best.Lateness.Min > lateFloor {
		f := Finding{
			ID: "sleep.floor", Severity: Notice, Confidence: Likely,
			Title:    fmt.Sprintf("no sleep ends less than %v late, however it is made", round(best.Lateness.Min)),
			Detail:   "The best of many sleeps by the kernel's own timers was as late as that: the CPU takes so long to wake up, or the hypervisor to deliver the interrupt.",
			Evidence: lateEvidence(d.way(SleepNanosleep, Idle), precise, timerfd),
			Remedy: []string{
				"keep CPUs out of deep idle states for a try: hold /dev/cpu_dma_latency open with a 0 written to it (tuned-adm profile latency-performance does that)",
				"in a virtual machine, ask whoever runs it about halt polling (kvm.halt_poll_ns on the host) and about CPUs that are shared",
			},
		}
		if best.Lateness.Min > tickFloor {
			f.Severity = Warning
			f.Detail = "The best of many sleeps by the kernel's own timers was as late as a tick: the kernel has no high-resolution timers, or no usable device for them."
			f.Remedy = append([]string{"look for the finding clocks.low-resolution-timers, and at the clock event device: cat /sys/devices/system/clockevents/clockevent0/current_device"}, f.Remedy...)
		}
		found = append(found, f)
	}
	pkg, ours := d.way(SleepTime, Idle), d.way(SleepDetent, Idle)
	if pkg != nil && best != nil && pkg.Lateness.Count >= fewSleeps && pkg.Lateness.P50 > coarseSleep && best.Lateness.P50 < coarseSleep/2 {
		found = append(found, Finding{
			ID: "sleep.package-time", Severity: Info, Confidence: Certain,
			Title:    fmt.Sprintf("time.Sleep(%v) takes %v, where the kernel could do it in %v", d.Requested, round(d.Requested+pkg.Lateness.P50), round(d.Requested+best.Lateness.P50)),
			Detail:   "So it is on every Linux machine: an idle Go scheduler waits in whole milliseconds. It matters to programs that pace or retry below a millisecond or two.",
			Evidence: lateEvidence(pkg, ours, best),
			Remedy:   []string{"sleep and set timers by package timer where less than two milliseconds matter"},
		})
	}
	if pkg, best := d.way(SleepTime, Busy), d.way(SleepPrecise, Busy); pkg != nil && best != nil && pkg.Lateness.P50 > 5*time.Millisecond && best.Lateness.P50 < time.Millisecond {
		found = append(found, Finding{
			ID: "sleep.busy-scheduler", Severity: Info, Confidence: Certain,
			Title:    fmt.Sprintf("while every P of a Go program is busy, time.Sleep ends %v late, a thread of its own %v", round(pkg.Lateness.P50), round(best.Lateness.P50)),
			Detail:   "So it is on every machine: goroutines that compute give up their P after 10 ms. Timers wait for one as goroutines do.",
			Evidence: lateEvidence(pkg, d.way(SleepDetent, Busy), d.way(SleepTimerfd, Busy), d.way(SleepLane, Busy), best),
			Remedy:   []string{"keep some Ps free, or give timers that must be on time a thread of their own: callbacks on a lane (timer.NewLane)"},
		})
	}
	return found
}
