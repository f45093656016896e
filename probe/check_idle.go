package probe

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/detent-go/detent/internal/hostfs"
)

// The check of how CPUs sleep. It has IdleData.
var idleCheck = Check{
	Name:  "idle",
	About: "how deeply CPUs sleep, and how long they take to wake",
	Run: func(_ context.Context, e *Env) Result {
		if err := e.linux(); err != nil {
			return Result{Err: err}
		}
		cpu := 0
		if online, err := hostfs.OnlineCPUs(e.Root); err == nil && len(online) > 0 {
			cpu = online[0]
		}
		d := &IdleData{CPU: cpu, Virtual: e.platformData().Virtual}
		parameters, err := hostfs.ReadParameters(e.Root)
		if err != nil {
			err = unseen("the kernel's parameters", err, "")
		}
		d.Parameters = parameters.Named("idle", "processor.max_cstate", "intel_idle.max_cstate", "cpuidle.off", "cpuidle.governor", "cpuidle_haltpoll.force")
		idle, idleErr := hostfs.ReadIdle(e.Root, cpu)
		if errors.Is(idleErr, fs.ErrNotExist) {
			return Result{Err: errors.Join(err, fmt.Errorf("the kernel has no choice of idle states: %w", errors.ErrUnsupported)), Findings: judgeIdle(d)}
		}
		if idleErr != nil {
			return Result{Err: errors.Join(err, unseen("idle states", idleErr, ""))}
		}
		d.Driver, d.Governor = idle.Driver, idle.Governor
		for _, s := range idle.States {
			d.States = append(d.States, IdleState(s))
		}
		return Result{Err: err, Data: d, Findings: judgeIdle(d)}
	},
}

// IdleData is the data of the check "idle".
type IdleData struct {
	CPU        int         `json:"cpu"` // whose states they are; others have the same
	Driver     string      `json:"driver"`
	Governor   string      `json:"governor"`
	States     []IdleState `json:"states"` // lightest first
	Parameters []string    `json:"parameters"`
	Virtual    Known       `json:"virtual"`
}

// An IdleState is one way for a CPU to sleep.
type IdleState struct {
	Name    string        `json:"name"`
	About   string        `json:"about,omitempty"`
	Latency time.Duration `json:"exit_latency_ns"` // to leave it, at the worst
	Stay    time.Duration `json:"residency_ns"`    // in which it begins to save energy
	Enabled bool          `json:"enabled"`
	Used    int64         `json:"used"` // times entered since the machine started
	Time    time.Duration `json:"time_ns"`
}

// deepest is the enabled state that takes longest to leave; nil without states.
func (d *IdleData) deepest() *IdleState {
	var deepest *IdleState
	for i := range d.States {
		if s := &d.States[i]; s.Enabled && (deepest == nil || s.Latency > deepest.Latency) {
			deepest = s
		}
	}
	return deepest
}

// slowExit is what an idle CPU may take to wake before it is the larger part of a
// precise timer's lateness.
const slowExit = 30 * time.Microsecond

func judgeIdle(d *IdleData) []Finding {
	var found []Finding
	p := hostfs.Parameters(d.Parameters)
	if v, _ := p.Last("idle"); v == "poll" {
		found = append(found, Finding{
			ID: "idle.polling", Severity: Info, Confidence: Certain,
			Title:    "idle CPUs spin (idle=poll): they wake at once, use full power, and slow their SMT siblings and each other's turbo",
			Evidence: []Evidence{{"kernel parameters", "idle=poll", "/proc/cmdline"}},
			Remedy:   []string{removeParameters("idle=poll") + "; a process that needs it can hold CPUs awake by itself: keep /dev/cpu_dma_latency open with a 0 written to it (4 bytes)"},
		})
		return found
	}
	s := d.deepest()
	if s == nil || s.Latency < slowExit {
		return found
	}
	return append(found, Finding{
		ID: "idle.exit-latency", Severity: Info, Confidence: Certain,
		Title:  fmt.Sprintf("an idle CPU takes up to %v to wake (%s)", s.Latency, s.Name),
		Detail: "A timer that is due on a CPU in this state is late by as much. The kernel wakes the CPU a little earlier where it expects the timer, which not all hardware lets it.",
		Evidence: []Evidence{
			{"driver, governor", d.Driver + ", " + d.Governor, "/sys/devices/system/cpu/cpuidle"},
			{s.Name, fmt.Sprintf("leaves in %v, entered %s", s.Latency, plural(s.Used, "time")), fmt.Sprintf("/sys/devices/system/cpu/cpu%d/cpuidle", d.CPU)},
		},
		Remedy: []string{
			"where it matters: cpupower idle-set -D 11   # no state that takes longer than 10 us; in effect at once, until the next start; the machine uses more power",
			"or for one process's life: keep /dev/cpu_dma_latency open with the latency that may be, in microseconds, written to it (4 bytes)",
		},
	})
}
