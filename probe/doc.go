// Package probe measures how this machine keeps time, and returns what it finds
// as data: which clock the kernel uses and what reading it costs, whether CPUs
// agree, who delays a sleep, what is set such that timers are late. It prints
// nothing and changes nothing.
//
//	report, err := probe.Run(ctx, probe.Options{Effort: probe.Quick})
//	for _, f := range report.Findings() {
//		fmt.Println(f.Severity, f.ID, f.Title)
//	}
//
// A [Report] has one [Result] per [Check]. A result holds the check's own data
// (a struct of this package, for tables and plots) and its findings. A [Finding]
// says what is the matter, how bad that is, how sure the probe is, what it was
// concluded from, and what to do about it, exactly. Finding IDs are stable, and
// docs/findings.md explains each.
//
// A healthy machine has no finding above [Info]. A finding is a fault or
// something to know, never a mere possibility: a virtual machine on kvm-clock, on
// Hyper-V's TSC page or on arm64 reads its clock through the vDSO and is told so.
//
// # Measurements
//
// Five checks measure, on this process, after those that read files:
//
//	clocks    ClocksData    what each clock costs to read, by the vDSO and by system call
//	counter   CounterData   the cycle counter's rate and jumps, the offset of each pair of CPUs
//	steps     StepsData     how often a reading was smaller than one before it
//	sleep     SleepData     how late sleeps end, in each way to sleep
//	pauses    PausesData    for how long a spinning loop stands still, and who had the CPU
//
// Each measures first and judges afterwards, by effects well beyond what noise
// makes: costs are the least of many rounds, ratios are of things measured in turn,
// offsets have hard bounds, and what a busy machine explains is put down to that.
// A run keeps to the time of its Effort however busy the machine is: what it did not
// get to matches [ErrNoTime].
// [MeasureSleeps] makes the fourth with other durations.
//
// # Privileges and other systems
//
// Everything works without privileges. What a check may not see it reports in
// Result.Err, matching fs.ErrPermission, with a hint who could see it; what it
// could see is in the result all the same. On systems other than Linux the checks
// that read /proc and /sys return an error that matches errors.ErrUnsupported.
//
// # When not to use it
//
// The measuring checks keep CPUs busy for seconds. A program that wants to know
// only whether its own clock is fast asks package clock; one that watches its own
// timers reads timer.Stats. Run a probe when a person asks, or once at start-up
// with Options.Checks naming what is of interest.
package probe
