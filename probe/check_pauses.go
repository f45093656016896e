package probe

import (
	"context"
	"fmt"
	"time"
)

// The check of who takes the CPU from a loop that never waits. It has PausesData.
var pausesCheck = Check{
	Name:   "pauses",
	About:  "for how long a loop that only reads the clock stands still on each CPU, and who had the CPU meanwhile",
	Budget: func(e *Env) time.Duration { return pausesTime(e.Effort) },
	Run: func(ctx context.Context, e *Env) Result {
		if err := e.measurable(); err != nil {
			return Result{Err: err}
		}
		d, err := measurePauses(ctx, e)
		if d == nil {
			return Result{Err: err}
		}
		return Result{Err: err, Data: d, Findings: judgePauses(d)}
	},
}

// From what part of the time, or what length of one pause, they matter.
const (
	stolenNotice  = 0.02
	stolenWarning = 0.10
	longNotice    = 20 * time.Millisecond
	longWarning   = 100 * time.Millisecond
	busyPart      = 0.15
)

func judgePauses(d *PausesData) []Finding {
	if !d.Pinned || len(d.CPUs) == 0 {
		return nil
	}
	var spent time.Duration
	var preempted, stolen PauseSum
	worst := d.CPUs[0]
	for _, c := range d.CPUs {
		spent += c.For
		preempted.Total += c.Preempted.Total
		preempted.Count += c.Preempted.Count
		preempted.Longest = max(preempted.Longest, c.Preempted.Longest)
		stolen.Total += c.Stolen.Total
		stolen.Count += c.Stolen.Count
		stolen.Longest = max(stolen.Longest, c.Stolen.Longest)
		if c.Stolen.Longest > worst.Stolen.Longest {
			worst = c
		}
	}
	if spent <= 0 {
		return nil
	}
	var found []Finding
	part := float64(stolen.Total) / float64(spent)
	if part > stolenNotice || stolen.Longest > longNotice {
		f := Finding{
			ID: "pauses.stolen", Severity: Notice, Confidence: Likely,
			Title: fmt.Sprintf("something below the operating system takes the CPUs away: %.1f %% of the time, up to %v at once", 100*part, round(stolen.Longest)),
			Detail: "Threads that spun on each CPU stood still although nothing else ran there: the hypervisor had given the CPU to another guest, or firmware (SMI) or interrupts had it." +
				" Whatever is due meanwhile is late by as much, and no program can help it.",
			Evidence: []Evidence{
				{"time taken", fmt.Sprintf("%v of %v in %d pauses of 20 us or longer", round(stolen.Total), round(spent), stolen.Count), "measured on " + cpuCount(len(d.CPUs))},
				{"the longest", fmt.Sprintf("%v, on CPU %d", round(worst.Stolen.Longest), worst.CPU), "measured"},
			},
			Remedy: []string{
				"in a virtual machine: look at steal time (vmstat 1, column st), and move to a host or an instance type whose CPUs are not shared",
				"on bare metal: look for SMIs (turbostat --show SMI, or tracing's hwlat tracer) and switch off what makes them in the firmware (USB legacy support, power capping, error reporting)",
			},
		}
		if d.Steal >= 0 {
			f.Evidence = append(f.Evidence, Evidence{"steal time meanwhile", fmt.Sprintf("%.1f %% of all CPUs' time", 100*d.Steal), "/proc/stat"})
			if d.Steal > stolenNotice/2 {
				f.Confidence = Certain // the kernel has seen the same
			}
		}
		if d.Groups > 0 && d.Common > 0 {
			f.Evidence = append(f.Evidence, Evidence{"pauses of several CPUs at the same time", fmt.Sprint(d.Common), "measured"})
		}
		if part > stolenWarning || stolen.Longest > longWarning {
			f.Severity = Warning
		}
		found = append(found, f)
	}
	part = float64(preempted.Total) / float64(spent)
	switch {
	case part > busyPart && d.Throttled > preempted.Total/2:
		found = append(found, Finding{
			ID: "pauses.throttled", Severity: Info, Confidence: Certain,
			Title:    fmt.Sprintf("the CPU quota kept this process from running while it was looked at: %.0f %% of the time of a thread on each CPU", 100*part),
			Detail:   "So it does whenever a program in the group computes on several CPUs at once. Costs that are given as the least of many rounds are right all the same; medians and latenesses are those of a process that is made to wait.",
			Evidence: []Evidence{{"throttled", fmt.Sprintf("%s, %v summed over CPUs", times(int(d.Throttles)), round(d.Throttled)), d.Group + "/cpu.stat"}, {"pauses of the threads", fmt.Sprintf("%v of %v, up to %v at once", round(preempted.Total), round(spent), round(preempted.Longest)), "measured on " + cpuCount(len(d.CPUs))}},
			Remedy:   []string{"for figures of the machine itself, run it outside of the group; for those of the group, look for findings about its quota"},
		})
	case part > busyPart:
		found = append(found, Finding{
			ID: "pauses.busy", Severity: Info, Confidence: Certain,
			Title:    fmt.Sprintf("the machine was busy while it was looked at: other threads had the CPUs for %.0f %% of the time", 100*part),
			Detail:   "Costs that are given as the least of many rounds are right all the same; medians and latenesses are those of a busy machine.",
			Evidence: []Evidence{{"time of other threads", fmt.Sprintf("%v of %v, up to %v at once", round(preempted.Total), round(spent), round(preempted.Longest)), "measured on " + cpuCount(len(d.CPUs))}},
			Remedy:   []string{"for figures of the machine itself, run it again when it is idle"},
		})
	}
	return found
}

func cpuCount(n int) string {
	if n == 1 {
		return "one CPU"
	}
	return fmt.Sprintf("%d CPUs", n)
}
