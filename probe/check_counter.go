package probe

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
)

// The check of the CPU's cycle counter by measurement. It has CounterData.
var counterCheck = Check{
	Name:  "counter",
	About: "the CPU's cycle counter: its rate, its jumps, and how far the CPUs' counters are apart",
	Budget: func(e *Env) time.Duration {
		d, _ := counterTime(e.Effort)
		return d
	},
	Run: func(ctx context.Context, e *Env) Result {
		if err := e.measurable(); err != nil {
			return Result{Err: err}
		}
		d, err := measureCounter(ctx, e)
		if d == nil {
			return Result{Err: err}
		}
		return Result{Err: errors.Join(err, d.unseen()), Data: d, Findings: judgeCounter(d)}
	},
}

// unseen says which CPUs could not be compared; nil if all that were planned were.
func (d *CounterData) unseen() error {
	failed, why := 0, ""
	for i := range d.Pairs {
		if d.Pairs[i].Error != "" {
			failed, why = failed+1, d.Pairs[i].Error
		}
	}
	if failed+d.Missed == 0 {
		return nil
	}
	if why == "" {
		why = "the time did not suffice"
	}
	return fmt.Errorf("%d of %d pairs of CPUs could not be compared: %s", failed+d.Missed, len(d.Pairs)+d.Missed, why)
}

const (
	// wrongRate is how far a stated frequency may be off the measured one, as a
	// part of it; nominalRate the same for one that is stated in MHz of the CPU's
	// nominal frequency.
	wrongRate   = 1000e-6
	nominalRate = 0.01

	// seriousOffset, in nanoseconds, is more than the time between two readings of
	// a clock on different CPUs: programs see time step back.
	seriousOffset = 200
)

func judgeCounter(d *CounterData) []Finding {
	var found []Finding
	if f, ok := judgeOffsets(d); ok {
		found = append(found, f)
	}
	if f, ok := judgeDrift(d); ok {
		found = append(found, f)
	}
	if f, ok := judgeJumps(d); ok {
		found = append(found, f)
	}
	if f, ok := judgeRate(d); ok {
		found = append(found, f)
	}
	return found
}

// notTrusted is why it does little harm.
func (d *CounterData) notTrusted() string {
	return fmt.Sprintf("The kernel keeps time by %s, so that its own clocks are not concerned: programs that read the counter themselves are.", d.Clocksource)
}

func judgeOffsets(d *CounterData) (Finding, bool) {
	worst := worstOffset(d.Pairs)
	if worst == nil {
		return Finding{}, false
	}
	apart, confirmed := 0, 0
	for i := range d.Pairs {
		if p := &d.Pairs[i]; p.Apart {
			apart++
			confirmed = max(confirmed, p.Confirmed)
		}
	}
	first, behind, low, high := ahead(worst, worst.Low, worst.High)
	f := Finding{
		ID: "counter.offset", Severity: Critical, Confidence: Likely,
		Title: fmt.Sprintf("the CPUs' counters are not in step: that of CPU %d is %s ahead of that of CPU %d",
			first, between(low, high), behind),
		Detail: "Messages between the two arrived before they were sent, by the counters. The kernel keeps time by this counter, so that every clock can step back when a thread moves from one CPU to another.",
		Evidence: []Evidence{
			{"pairs that are apart", fmt.Sprintf("%d of %d compared: %s", apart, len(d.Pairs), d.Plan), "measured"},
			{"the worst pair", fmt.Sprintf("CPUs %d and %d (%s): %s, in %d of %d bursts, round trip %s", first, behind, worst.Relation,
				between(low, high), worst.Confirmed, worst.Bursts, nanos(worst.RoundTrip)), "messages between pinned threads"},
			{"current_clocksource", d.Clocksource, "/sys/devices/system/clocksource/clocksource0/current_clocksource"},
		},
		Remedy: []string{
			"switch to a clocksource that all CPUs share: cat /sys/devices/system/clocksource/clocksource0/available_clocksource, and write its name (kvm-clock, hyperv_clocksource_tsc_page, hpet) to current_clocksource beside it; hpet and acpi_pm make every reading of a clock a system call",
			"update the firmware, which sets the counters when the machine starts; a restart, not from suspend, sets them anew",
		},
	}
	if worst.Certain() == 0 {
		f.Title = fmt.Sprintf("the CPUs' counters were not in step at times: CPUs %d and %d", worst.From, worst.To)
	}
	for _, g := range d.Groups {
		if g.Apart > 0 {
			f.Evidence = append(f.Evidence, Evidence{string(g.Relation), fmt.Sprintf("%d of %d pairs apart", g.Apart, g.Pairs), "measured"})
		}
	}
	if confirmed > 1 {
		f.Confidence = Certain
	}
	switch {
	case !d.Trusted:
		f.Severity = Notice
		f.Detail = d.notTrusted()
		f.Remedy = []string{"do not read the counter in programs; package clock's TSC does not where it finds this"}
	case worst.Certain() < seriousOffset:
		f.Severity = Warning
		f.Detail += " It is less than a reading takes, so that few programs will notice."
	}
	return f, true
}

func judgeDrift(d *CounterData) (Finding, bool) {
	var worst *PairOffset
	rate := func(p *PairOffset) float64 { return max(p.DriftLow, -p.DriftHigh) }
	for i := range d.Pairs {
		if p := &d.Pairs[i]; p.Drifting && (worst == nil || rate(p) > rate(worst)) {
			worst = p
		}
	}
	if worst == nil {
		return Finding{}, false
	}
	first, behind, low, high := ahead(worst, worst.DriftLow, worst.DriftHigh)
	f := Finding{
		ID: "counter.drift", Severity: Critical, Confidence: Likely,
		Title: fmt.Sprintf("the CPUs' counters run at different rates: CPU %d's gains %s on CPU %d's in a second",
			first, between(low, high), behind),
		Detail: "However well they are set when the machine starts, they come apart. The kernel keeps time by this counter.",
		Evidence: []Evidence{
			{"bounds of the drift", between(low, high) + " a second", fmt.Sprintf("%d bursts of messages over %v", worst.Bursts, d.Over.Round(10*time.Millisecond))},
			{"current_clocksource", d.Clocksource, "/sys/devices/system/clocksource/clocksource0/current_clocksource"},
		},
		Remedy: []string{"switch to another clocksource: /sys/devices/system/clocksource/clocksource0/available_clocksource lists them; hpet and acpi_pm make every reading of a clock a system call"},
	}
	if worst.Bursts >= 4 {
		f.Confidence = Certain
	}
	if worst.Drift != nil && worst.DriftError != nil {
		f.Evidence = append(f.Evidence, Evidence{"by regression", fmt.Sprintf("%.1f ± %.1f ns a second", math.Abs(*worst.Drift), *worst.DriftError), "measured"})
	}
	if !d.Trusted {
		f.Severity, f.Detail, f.Remedy = Notice, d.notTrusted(), []string{"do not read the counter in programs"}
	}
	return f, true
}

func judgeJumps(d *CounterData) (Finding, bool) {
	if len(d.Jumps) == 0 {
		return Finding{}, false
	}
	worst := d.Jumps[0]
	for _, j := range d.Jumps {
		if j.By.Abs() > worst.By.Abs() {
			worst = j
		}
	}
	f := Finding{
		ID: "counter.jump", Severity: Warning, Confidence: Certain,
		Title: fmt.Sprintf("the cycle counter and the kernel's clock jumped apart %s, by up to %v", times(len(d.Jumps)), worst.By.Abs().Round(time.Microsecond)),
		Detail: "The counter was set, or stood still, while the clock went on, or the other way round: a live migration or a snapshot of the virtual machine, a suspend, or firmware that writes the counter." +
			" Whoever scales the counter is wrong by as much.",
		Evidence: []Evidence{
			{"the largest jump", fmt.Sprintf("counter %+v against CLOCK_MONOTONIC_RAW, within %v", worst.By.Round(10*time.Nanosecond), worst.Within.Round(time.Microsecond)), fmt.Sprintf("%d samples over %v", d.Samples, d.Over.Round(time.Millisecond))},
			{"current_clocksource", d.Clocksource, "/sys/devices/system/clocksource/clocksource0/current_clocksource"},
		},
		Remedy: []string{"run detent doctor again: once may have been a migration; if it keeps happening, do not use the counter for time, and ask whoever runs the machine about firmware or hypervisor"},
	}
	if len(d.Jumps) == 1 {
		f.Severity = Notice
	}
	return f, true
}

func judgeRate(d *CounterData) (Finding, bool) {
	if d.Stated == 0 || d.Frequency == 0 {
		return Finding{}, false
	}
	off := math.Abs(d.Frequency/d.Stated - 1)
	allowed := wrongRate
	if strings.HasSuffix(d.StatedBy, "16h") {
		allowed = nominalRate
	}
	if off <= allowed+d.FrequencyError/d.Frequency {
		return Finding{}, false
	}
	return Finding{
		ID: "counter.rate", Severity: Notice, Confidence: Certain,
		Title:  fmt.Sprintf("the cycle counter does not run at the frequency that the machine states: %.6g MHz, not %.6g", d.Frequency/1e6, d.Stated/1e6),
		Detail: "Programs that take the stated frequency for the counter's measure intervals wrong by the same part. Package clock does not: it follows the kernel's clock.",
		Evidence: []Evidence{
			{"measured", fmt.Sprintf("%.0f Hz ± %.0f", d.Frequency, d.FrequencyError), fmt.Sprintf("CLOCK_MONOTONIC_RAW over %v", d.Over.Round(time.Millisecond))},
			{"stated", fmt.Sprintf("%.0f Hz", d.Stated), d.StatedBy},
		},
	}, true
}

// ahead names the CPU of a pair that is ahead, or gains, first, and turns the
// bounds accordingly.
func ahead(p *PairOffset, low, high float64) (first, behind int, _, _ float64) {
	if high < 0 {
		return p.From, p.To, -high, -low
	}
	return p.To, p.From, low, high
}

// between writes the bounds of something in nanoseconds.
func between(low, high float64) string {
	if low > 0 && high < 2*low && high-low < 1e3 {
		return "about " + nanos((low+high)/2)
	}
	if low <= 0 {
		return fmt.Sprintf("-%s to %s", nanos(-low), nanos(high))
	}
	return fmt.Sprintf("%s to %s", nanos(low), nanos(high))
}

// times writes how often.
func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
