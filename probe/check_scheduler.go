package probe

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/detent-go/detent/internal/hostfs"
)

// The check of the kernel's scheduler. It has SchedulerData.
var schedulerCheck = Check{
	Name:  "scheduler",
	About: "how the kernel preempts, and what it allows real-time threads",
	Run: func(_ context.Context, e *Env) Result {
		if err := e.linux(); err != nil {
			return Result{Err: err}
		}
		d := &SchedulerData{}
		parameters, err := hostfs.ReadParameters(e.Root)
		if err != nil {
			err = unseen("the kernel's parameters", err, "")
		}
		d.Preemption, d.PreemptionSource, d.Switchable = readPreemption(e, parameters)
		runtime, runtimeErr := hostfs.Int(e.Root, "proc/sys/kernel/sched_rt_runtime_us")
		period, periodErr := hostfs.Int(e.Root, "proc/sys/kernel/sched_rt_period_us")
		if rtErr := errors.Join(runtimeErr, periodErr); rtErr != nil {
			err = errors.Join(err, unseen("limits of real-time threads", rtErr, ""))
		} else {
			d.RealtimePeriod = time.Duration(period) * time.Microsecond
			d.RealtimeRuntime = time.Duration(runtime) * time.Microsecond
			if runtime < 0 {
				d.RealtimeRuntime = -1
			}
		}
		autogroup, _ := hostfs.Int(e.Root, "proc/sys/kernel/sched_autogroup_enabled")
		d.Autogroup = autogroup == 1
		if state, stateErr := hostfs.String(e.Root, "sys/kernel/sched_ext/state"); stateErr == nil && state == "enabled" {
			d.Extension, _ = hostfs.String(e.Root, "sys/kernel/sched_ext/root/ops")
			if d.Extension == "" {
				d.Extension = "unknown"
			}
		}
		return Result{Err: err, Data: d, Findings: judgeScheduler(d)}
	},
}

// SchedulerData is the data of the check "scheduler".
type SchedulerData struct {
	Preemption       Preemption `json:"preemption"`
	PreemptionSource string     `json:"preemption_source,omitempty"`
	Switchable       bool       `json:"preemption_switchable"` // by the parameter preempt=, without another kernel
	// RealtimeRuntime is what real-time threads may use in each RealtimePeriod; -1:
	// everything; 0 with a period of 0: unknown.
	RealtimeRuntime time.Duration `json:"realtime_runtime_ns"`
	RealtimePeriod  time.Duration `json:"realtime_period_ns"`
	Autogroup       bool          `json:"autogroup"`           // sessions share the CPU, not threads
	Extension       string        `json:"sched_ext,omitempty"` // the scheduler that BPF has loaded
}

// A Preemption says where the kernel lets go of a CPU for a thread that has woken;
// "" if that is not known.
type Preemption string

const (
	PreemptNone      Preemption = "none"      // at the end of a system call
	PreemptVoluntary Preemption = "voluntary" // and where it is known to take long
	PreemptLazy      Preemption = "lazy"      // anywhere, for real-time threads; for others at the next tick
	PreemptFull      Preemption = "full"      // anywhere but inside spinlocks
	PreemptRT        Preemption = "rt"        // anywhere
)

// readPreemption prefers what is in force to what was asked for, and that to what
// the kernel was built for.
func readPreemption(e *Env, p hostfs.Parameters) (mode Preemption, source string, switchable bool) {
	config, configErr := hostfs.ReadConfig(e.Root)
	version, _ := hostfs.String(e.Root, "proc/version")
	switchable = configErr == nil && config.On("PREEMPT_DYNAMIC") || strings.Contains(version, "PREEMPT_DYNAMIC")
	if rt, err := hostfs.Int(e.Root, "sys/kernel/realtime"); err == nil && rt == 1 {
		return PreemptRT, "/sys/kernel/realtime", false
	}
	if strings.Contains(version, "PREEMPT_RT") {
		return PreemptRT, "/proc/version", false
	}
	// none voluntary (full) lazy
	if all, err := hostfs.String(e.Root, "sys/kernel/debug/sched/preempt"); err == nil {
		if chosen, ok := enclosed(all, "(", ")"); ok {
			return Preemption(chosen), "/sys/kernel/debug/sched/preempt", switchable
		}
	}
	if v, ok := p.Last("preempt"); ok && switchable {
		switch mode := Preemption(v); mode {
		case PreemptNone, PreemptVoluntary, PreemptLazy, PreemptFull:
			return mode, "/proc/cmdline", switchable
		}
	}
	if configErr == nil {
		for _, c := range []struct {
			option string
			mode   Preemption
		}{
			{"PREEMPT_RT", PreemptRT}, {"PREEMPT_RT_FULL", PreemptRT}, {"PREEMPT_NONE", PreemptNone}, {"PREEMPT_VOLUNTARY", PreemptVoluntary},
			{"PREEMPT_LAZY", PreemptLazy}, {"PREEMPT", PreemptFull},
		} {
			if config.On(c.option) {
				return c.mode, config.Source, switchable
			}
		}
	}
	// "#1 SMP PREEMPT ...": a kernel that can do nothing else.
	if strings.Contains(version, " PREEMPT ") {
		return PreemptFull, "/proc/version", false
	}
	return "", "", switchable
}

func judgeScheduler(d *SchedulerData) []Finding {
	var found []Finding
	if d.Preemption == PreemptNone {
		f := Finding{
			ID: "scheduler.not-preemptible", Severity: Info, Confidence: Certain,
			Title:    "the kernel is not preemptible: whoever wakes waits for the system call that runs on its CPU to end",
			Detail:   "Usual on servers. A long system call of another process (freeing much memory, a large write) delays a timer by milliseconds.",
			Evidence: []Evidence{{"preemption", string(d.Preemption), d.PreemptionSource}},
			Remedy:   []string{"use a kernel with CONFIG_PREEMPT=y or CONFIG_PREEMPT_DYNAMIC=y where single milliseconds matter"},
		}
		if d.Switchable {
			f.Remedy = []string{"add preempt=full to the kernel's command line; to try it at once, as root: echo full > /sys/kernel/debug/sched/preempt. System calls then cost some percent of throughput"}
		}
		found = append(found, f)
	}
	if d.RealtimeRuntime == -1 {
		found = append(found, Finding{
			ID: "scheduler.realtime-unlimited", Severity: Info, Confidence: Certain,
			Title:    "real-time threads may use a CPU to the last: one that spins stops everything else there",
			Evidence: []Evidence{{"sched_rt_runtime_us", "-1", "/proc/sys/kernel/sched_rt_runtime_us"}},
			Remedy:   []string{"sysctl kernel.sched_rt_runtime_us=950000   # the default: 5 % of each second for the others; in effect at once"},
		})
	}
	if d.Extension != "" {
		found = append(found, Finding{
			ID: "scheduler.extension", Severity: Info, Confidence: Certain,
			Title:    "a scheduler loaded by BPF decides who runs: " + d.Extension,
			Detail:   "How soon a woken thread gets a CPU is that scheduler's choice, not the kernel's usual one.",
			Evidence: []Evidence{{"sched_ext", d.Extension, "/sys/kernel/sched_ext"}},
		})
	}
	return found
}
