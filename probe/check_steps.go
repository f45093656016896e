package probe

import (
	"context"
	"fmt"
	"time"
)

// The check of time stepping back. It has StepsData.
var stepsCheck = Check{
	Name:   "steps",
	About:  "whether time steps back: on one CPU, on all of them, from one thread to another",
	Budget: func(e *Env) time.Duration { return stepsTime(e.Effort) },
	Run: func(ctx context.Context, e *Env) Result {
		if err := e.measurable(); err != nil {
			return Result{Err: err}
		}
		d, err := measureStepsBack(ctx, e)
		if d == nil {
			return Result{Err: err}
		}
		return Result{Err: err, Data: d, Findings: judgeSteps(d)}
	},
}

// enoughSteps are no accident.
const enoughSteps = 3

// A clockSteps sums up the counts of one clock.
type clockSteps struct {
	clock, promise string
	readings, back uint64
	worst          StepCount
	methods        []Evidence
}

func sumSteps(counts []StepCount) []clockSteps {
	var sums []clockSteps
	for _, c := range counts {
		if len(sums) == 0 || sums[len(sums)-1].clock != c.Clock {
			sums = append(sums, clockSteps{clock: c.Clock, promise: c.Promise})
		}
		s := &sums[len(sums)-1]
		s.readings += c.Readings
		s.back += c.Back
		if c.Back > 0 && c.Worst >= s.worst.Worst {
			s.worst = c
		}
		e := Evidence{c.Clock + ", " + string(c.Method), fmt.Sprintf("none of %d readings", c.Readings), "measured on one thread"}
		if c.Back > 0 {
			e.Value = fmt.Sprintf("%d of %d readings, by up to %v", c.Back, c.Readings, c.Worst)
		}
		if c.Threads > 1 {
			e.Source = fmt.Sprintf("measured on %d threads", c.Threads)
		}
		s.methods = append(s.methods, e)
	}
	return sums
}

func judgeSteps(d *StepsData) []Finding {
	var found []Finding
	for _, s := range sumSteps(d.Counts) {
		if s.back == 0 {
			continue
		}
		var f Finding
		sure := Certain
		if s.back < enoughSteps {
			sure = Likely
		}
		source := Evidence{"current_clocksource", d.Clocksource, "/sys/devices/system/clocksource/clocksource0/current_clocksource"}
		share := fmt.Sprintf("%d of %d readings", s.back, s.readings)
		switch {
		case s.promise == PromiseUnordered:
			f = Finding{
				ID: "steps.unordered-counter", Severity: Info, Confidence: Certain,
				Title:    fmt.Sprintf("unordered readings of the cycle counter run backwards from one thread to another: %s, by up to %v", share, s.worst.Worst),
				Detail:   "So it is on every machine: without a fence the CPU reads the counter early or late. It is why a program may use such readings for intervals within one thread only.",
				Evidence: s.methods,
			}
		case s.promise == PromiseCounter:
			f = Finding{
				ID: "steps.counter", Severity: Warning, Confidence: sure,
				Title:    fmt.Sprintf("the cycle counter stepped back from one CPU to another: %s, by up to %v", share, s.worst.Worst),
				Detail:   "Its readings were in order, so that the CPUs' counters are not in step.",
				Evidence: append(s.methods, source),
				Remedy:   []string{"see the finding counter.offset, or run the check \"counter\" again, thoroughly: it says which CPUs"},
			}
			if !d.Trusted {
				f.Severity = Notice
				f.Detail += " The kernel does not keep time by it."
			}
		case s.promise == PromiseWall && d.WallMoved < 0:
			f = Finding{
				ID: "steps.wall-set", Severity: Warning, Confidence: Certain,
				Title:    fmt.Sprintf("the wall clock was set back by %v while it was looked at", -d.WallMoved),
				Detail:   "Whoever measures an interval by wall-clock times, as they are after a round trip through JSON or a database, got a negative one. Times of time.Now compared in the process are not concerned: they have a monotonic part.",
				Evidence: append(s.methods, Evidence{"wall clock against CLOCK_MONOTONIC", d.WallMoved.String(), "measured, before and after"}),
				Remedy:   []string{"find out who sets the clock: journalctl -u chronyd -u systemd-timesyncd -u ntpd; let it steer instead of setting (chrony: makestep 1 3)"},
			}
		default:
			if s.promise == PromiseWall {
				sure = Likely // somebody may have set it to and fro
			}
			f = Finding{
				ID: "steps.back", Severity: Critical, Confidence: sure,
				Title:    fmt.Sprintf("%s stepped back: %s, by up to %v", s.clock, share, s.worst.Worst),
				Detail:   "A reading that began after another had ended was smaller. Programs compute negative durations, and timeouts that never end.",
				Evidence: append(s.methods, source),
				Remedy: []string{
					"compare the CPUs' counters: the findings of the check \"counter\" say whether they are apart",
					"switch to another clocksource: cat /sys/devices/system/clocksource/clocksource0/available_clocksource, and write a name to current_clocksource beside it",
					"report it to whoever supplies the kernel or the hypervisor, with this evidence: it is a defect",
				},
			}
		}
		found = append(found, f)
	}
	return found
}
