package probe

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/detent-go/detent/internal/hostfs"
)

// The check of who else wants the CPUs. It has ContentionData.
var contentionCheck = Check{
	Name:  "contention",
	About: "CPU time that the hypervisor gave to other machines, and threads that waited for a CPU",
	Budget: func(e *Env) time.Duration {
		if !e.Own {
			return 0
		}
		return contentionSample(e.Effort)
	},
	Run: func(ctx context.Context, e *Env) Result {
		if err := e.linux(); err != nil {
			return Result{Err: err}
		}
		before, err := hostfs.ReadCPUTime(e.Root)
		if err != nil {
			return Result{Err: unseen("CPU time", err, "")}
		}
		d := &ContentionData{StealSinceStart: share(before.Steal, before), BusySinceStart: busy(before), Virtual: e.platformData().Virtual}
		if e.Own {
			if err := clockStopped(); err != nil {
				return Result{Err: err, Data: d, Findings: judgeContention(d)}
			}
			select {
			case <-time.After(contentionSample(e.Effort)):
			case <-ctx.Done():
				return Result{Err: ended(ctx), Data: d, Findings: judgeContention(d)}
			}
			after, err := hostfs.ReadCPUTime(e.Root)
			if err != nil {
				return Result{Err: unseen("CPU time", err, ""), Data: d, Findings: judgeContention(d)}
			}
			d.Sample = contentionSample(e.Effort)
			d.Steal, d.Busy = share(after.Steal-before.Steal, after.Minus(before)), busy(after.Minus(before))
		}
		pressure, err := hostfs.ReadPressure(e.Root, "proc/pressure/cpu")
		switch {
		case err == nil:
			d.Pressure = &Pressure{pressure.Avg10, pressure.Avg60, pressure.Avg300}
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, errors.ErrUnsupported):
			err = nil // switched off, or an older kernel
		default:
			err = unseen("pressure", err, "the kernel's parameter psi=1 switches it on")
		}
		return Result{Err: err, Data: d, Findings: judgeContention(d)}
	},
}

func contentionSample(effort Effort) time.Duration {
	switch effort {
	case Quick:
		return 200 * time.Millisecond
	case Thorough:
		return 10 * time.Second
	}
	return time.Second
}

// ContentionData is the data of the check "contention". Shares are of all CPUs'
// time, from 0 to 1.
type ContentionData struct {
	Sample          time.Duration `json:"sample_ns"` // how long Steal and Busy were measured; 0 for a copied tree
	Steal           float64       `json:"steal"`     // given to others by the hypervisor
	Busy            float64       `json:"busy"`
	StealSinceStart float64       `json:"steal_since_start"`
	BusySinceStart  float64       `json:"busy_since_start"`
	Pressure        *Pressure     `json:"pressure,omitempty"` // nil: the kernel does not measure it
	Virtual         Known         `json:"virtual"`
}

// Pressure is the share of the last 10, 60 and 300 seconds in which somebody
// waited for a CPU, in percent.
type Pressure struct {
	Avg10  float64 `json:"avg10"`
	Avg60  float64 `json:"avg60"`
	Avg300 float64 `json:"avg300"`
}

func share(part int64, whole hostfs.CPUTime) float64 {
	if total := whole.Total(); total > 0 {
		return min(1, max(0, float64(part)/float64(total)))
	}
	return 0
}

func busy(t hostfs.CPUTime) float64 { return share(t.Total()-t.Idle-t.IOWait, t) }

func judgeContention(d *ContentionData) []Finding {
	var found []Finding
	// Since the machine's start, much is needed to be worth a word; in a sample of
	// a second, single ticks are noise.
	f := Finding{
		ID: "cpu.steal", Confidence: Certain,
		Detail: "While it is away, a machine's CPU stands still for everybody on it: timers are late by milliseconds, and no setting in the guest changes that.",
		Evidence: []Evidence{
			{"steal since the machine's start", percent(d.StealSinceStart, 1), "/proc/stat"},
		},
		Remedy: []string{"move the machine to a less loaded host, or to a kind with CPUs of its own: no burstable instances, dedicated vCPUs, vCPUs pinned by the host"},
	}
	if d.Sample > 0 {
		f.Evidence = append(f.Evidence, Evidence{"steal now", percent(d.Steal, 1), fmt.Sprintf("/proc/stat over %v", d.Sample)})
	}
	switch {
	case d.Steal >= 0.05 && d.Sample >= time.Second, d.Steal >= 0.10:
		f.Severity = Warning
		f.Title = fmt.Sprintf("the hypervisor gives %s of this machine's CPU time to others", percent(d.Steal, 1))
		found = append(found, f)
	case d.StealSinceStart >= 0.10:
		f.Severity = Warning
		f.Title = fmt.Sprintf("the hypervisor has given %s of this machine's CPU time to others since its start", percent(d.StealSinceStart, 1))
		found = append(found, f)
	case d.StealSinceStart >= 0.02:
		f.Severity = Notice
		f.Title = fmt.Sprintf("the hypervisor has given %s of this machine's CPU time to others since its start", percent(d.StealSinceStart, 1))
		found = append(found, f)
	}
	if p := d.Pressure; p != nil && p.Avg60 >= 25 {
		f := Finding{
			ID: "cpu.pressure", Severity: Notice, Confidence: Certain,
			Title:  fmt.Sprintf("in %.0f %% of the last minute some thread of this machine waited for a CPU", p.Avg60),
			Detail: "A thread that wakes for a timer waits in the same queue. What is measured meanwhile is measured on a busy machine.",
			Evidence: []Evidence{
				{"some avg10, avg60, avg300", fmt.Sprintf("%.1f, %.1f, %.1f %%", p.Avg10, p.Avg60, p.Avg300), "/proc/pressure/cpu"},
			},
			Remedy: []string{"see who: top, or per cgroup: systemd-cgtop; move it, or lower its weight (systemctl set-property UNIT CPUWeight=20)"},
		}
		if p.Avg60 >= 75 && p.Avg300 >= 50 {
			f.Severity = Warning
		}
		if d.Sample > 0 {
			f.Evidence = append(f.Evidence, Evidence{"CPUs busy", percent(d.Busy, 1), fmt.Sprintf("/proc/stat over %v", d.Sample)})
		}
		found = append(found, f)
	}
	return found
}
