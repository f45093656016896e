package probe

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/detent-go/detent/internal/hostfs"
)

// The check of how the kernel treats this process. It has ProcessData.
var processCheck = Check{
	Name:  "process",
	About: "how the kernel schedules this process, on which CPUs, and how much slack its sleeps have",
	Run: func(_ context.Context, e *Env) Result {
		if err := e.linux(); err != nil {
			return Result{Err: err}
		}
		d := &ProcessData{TimerSlack: -1, RealtimeLimit: -2}
		var errs []error
		slack, err := hostfs.TimerSlack(e.Root)
		if e.Own {
			if own, ownErr := timerSlack(); ownErr == nil {
				slack, err = own, nil
			}
		}
		if err != nil {
			errs = append(errs, unseen("timer slack", err, ""))
		} else {
			d.TimerSlack = slack
		}
		thread, err := hostfs.ReadThread(e.Root)
		if err != nil {
			errs = append(errs, unseen("scheduling policy", err, ""))
		} else {
			d.Nice, d.Priority, d.Policy = thread.Nice, thread.Priority, policyName(thread.Policy)
		}
		status, err := hostfs.Fields(e.Root, "proc/self/status")
		if err == nil {
			d.allowed, err = hostfs.ParseCPUs(status["Cpus_allowed_list"])
		}
		if err != nil {
			errs = append(errs, unseen("CPUs of this process", err, ""))
		}
		d.online, err = hostfs.OnlineCPUs(e.Root)
		if err != nil {
			errs = append(errs, unseen("CPUs of the machine", err, ""))
		}
		d.isolated, _ = hostfs.CPUs(e.Root, "sys/devices/system/cpu/isolated")
		d.CPUs, d.Online = d.allowed.String(), d.online.String()
		if d.RealtimeLimit, err = hostfs.Limit(e.Root, "Max realtime priority"); err != nil {
			errs = append(errs, unseen("limit of real-time priority", err, ""))
		}
		return Result{Err: errors.Join(errs...), Data: d, Findings: judgeProcess(d)}
	},
}

// ProcessData is the data of the check "process".
type ProcessData struct {
	// TimerSlack is how much later than asked the kernel may end a sleep of a
	// thread; -1: unknown. It does not concern timerfd.
	TimerSlack time.Duration `json:"timer_slack_ns"`
	Policy     string        `json:"policy"` // "other", "fifo", "rr", "batch", "idle", "deadline", "ext"
	Nice       int           `json:"nice"`
	Priority   int           `json:"priority"` // of fifo and rr
	CPUs       string        `json:"cpus"`     // that it may run on
	Online     string        `json:"online"`   // that the machine has
	// RealtimeLimit is the highest real-time priority that it may take without
	// privileges; -1: any.
	RealtimeLimit int64 `json:"realtime_limit"`

	allowed, online, isolated hostfs.CPUSet
}

func policyName(policy int) string {
	switch policy {
	case hostfs.PolicyOther:
		return "other"
	case hostfs.PolicyFIFO:
		return "fifo"
	case hostfs.PolicyRR:
		return "rr"
	case hostfs.PolicyBatch:
		return "batch"
	case hostfs.PolicyIdle:
		return "idle"
	case hostfs.PolicyDeadline:
		return "deadline"
	case hostfs.PolicyExt:
		return "ext"
	}
	return fmt.Sprint(policy)
}

// defaultSlack is what the kernel gives every thread that is not real-time.
const defaultSlack = 50 * time.Microsecond

func judgeProcess(d *ProcessData) []Finding {
	var found []Finding
	if d.TimerSlack > defaultSlack {
		f := Finding{
			ID: "process.timer-slack", Severity: Notice, Confidence: Certain,
			Title:    fmt.Sprintf("the kernel may end every sleep of this process %v late: its timer slack, usually 50 us", d.TimerSlack),
			Detail:   "Whoever started the process has set it. It concerns sleeps and waits of threads (nanosleep, epoll_wait, futex), which Go's own timers end in; timerfd, which package timer waits with where it is precise, has none.",
			Evidence: []Evidence{{"timer slack", d.TimerSlack.String(), "prctl(PR_GET_TIMERSLACK), /proc/self/timerslack_ns"}},
			Remedy:   []string{"look for TimerSlackNSec= in the unit that starts it: systemctl show -p TimerSlackNSec UNIT; without one, the parent process has it as well: cat /proc/PPID/timerslack_ns"},
		}
		if d.TimerSlack >= time.Millisecond {
			f.Severity = Warning
		}
		found = append(found, f)
	}
	switch {
	case d.Policy == "idle" || d.Policy == "batch":
		f := Finding{
			ID: "process.low-priority", Severity: Warning, Confidence: Certain,
			Title:    fmt.Sprintf("this process is scheduled by SCHED_%s: it gets a CPU after everybody else", map[string]string{"idle": "IDLE", "batch": "BATCH"}[d.Policy]),
			Evidence: []Evidence{{"policy", d.Policy, "/proc/self/stat"}},
			Remedy:   []string{"chrt --other --pid 0 PID, and look who sets it: CPUSchedulingPolicy= in its unit, chrt in its start script"},
		}
		if d.Policy == "batch" {
			f.Severity = Notice
			f.Title = "this process is scheduled by SCHED_BATCH: when it wakes it does not preempt who runs"
		}
		found = append(found, f)
	case d.Nice > 0:
		found = append(found, Finding{
			ID: "process.low-priority", Severity: Notice, Confidence: Certain,
			Title:    fmt.Sprintf("this process runs at nice %d: on a busy machine others come first", d.Nice),
			Evidence: []Evidence{{"nice", fmt.Sprint(d.Nice), "/proc/self/stat"}},
			Remedy:   []string{"start it without nice, or as root: renice -n 0 -p PID"},
		})
	}
	if len(d.allowed) > 1 && within(d.allowed, d.isolated) {
		found = append(found, Finding{
			ID: "process.on-isolated-cpus", Severity: Warning, Confidence: Likely,
			Title:    fmt.Sprintf("this process may run only on isolated CPUs (%s), where the scheduler balances nobody: its threads pile up on one", d.allowed),
			Detail:   "A thread stays on the CPU that it was started on, so that goroutines get one CPU, whatever GOMAXPROCS is.",
			Evidence: []Evidence{{"allowed", d.allowed.String(), "/proc/self/status"}, {"isolated", d.isolated.String(), "/sys/devices/system/cpu/isolated"}},
			Remedy: []string{
				"give it CPUs that are not isolated as well, and pin single threads to isolated ones",
				"or isolate by cpuset instead of isolcpus=: a partition of type root is balanced within (echo root > cpuset.cpus.partition)",
			},
		})
	}
	return found
}

func within(set, whole hostfs.CPUSet) bool {
	for _, cpu := range set {
		if !whole.Contains(cpu) {
			return false
		}
	}
	return true
}
