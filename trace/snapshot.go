package trace

import (
	"time"
)

// A Snapshot is what has been seen from the start of the tracer until Taken.
type Snapshot struct {
	Taken time.Time `json:"taken"`
	// Elapsed is the time that the counts are of.
	Elapsed time.Duration `json:"elapsed_ns"`
	// Clocksource is the kernel's current one; "" if it cannot be read.
	Clocksource string `json:"clocksource,omitempty"`
	Hooks       []Hook `json:"hooks"`
	// Processes are those of which something has been seen, by PID.
	Processes []Process `json:"processes"`
	// Kernel has the timers of the kernel itself.
	Kernel []TimerUse `json:"kernel,omitempty"`
	// Dropped counts what could not be kept, by what it was; a kind that is not
	// there has lost nothing.
	Dropped map[string]uint64 `json:"dropped,omitempty"`
}

// A Hook is a place in the kernel or in a program where something runs for the
// tracer.
type Hook struct {
	Name    string `json:"name"`    // "tp_btf/sched_switch"
	Feature string `json:"feature"` // what wants it
	// Absent says why it is not there; "" if it is.
	Absent string `json:"absent,omitempty"`
	// Runs and Time are what the kernel has counted, of every process of the
	// machine, followed or not.
	Runs uint64        `json:"runs"`
	Time time.Duration `json:"time_ns"`
}

// A Process is one that has been followed.
type Process struct {
	PID   int    `json:"pid"`
	Comm  string `json:"comm"`
	Exe   string `json:"exe,omitempty"`
	Ended bool   `json:"ended,omitempty"`
	// Threads is how many there were last, and CPU what they had used by then,
	// since the tracer first saw the process.
	Threads int           `json:"threads,omitempty"`
	CPU     time.Duration `json:"cpu_ns,omitempty"`

	// ClockCalls are the system calls that read a clock; none for a process on
	// the vDSO.
	ClockCalls []ClockCalls `json:"clock_calls,omitempty"`
	Timers     []TimerUse   `json:"timers,omitempty"`
	// Lateness is of wake-ups by timers, by their kind.
	Lateness []Lateness `json:"lateness,omitempty"`
	// Wait is how long its threads were runnable and did not run, whatever woke
	// them; nil where that is not watched.
	Wait     *Wait        `json:"wait,omitempty"`
	Quota    *Quota       `json:"quota,omitempty"` // of its cgroup; nil if it has none
	Go       *GoScheduler `json:"go,omitempty"`
	Profile  *CPUProfile  `json:"profile,omitempty"`
	GoTimers *Histogram   `json:"go_timers,omitempty"` // lateness, by the runtime's own clock
}

// ClockCalls are one process's system calls that read one clock.
type ClockCalls struct {
	Call  string `json:"call"`  // "clock_gettime", "gettimeofday" or "time"
	Clock string `json:"clock"` // "monotonic", "realtime", "process-cpu" ...
	ID    int    `json:"id"`    // of the clock; negative ones stand for a kind, see ClockName
	Count uint64 `json:"count"`
	// Took is how long the kernel took, without the way there and back; nil
	// without WatchCallTimes.
	Took *Histogram `json:"took,omitempty"`
	// Reason is why these are system calls, and Evidence what says so.
	Reason   Reason     `json:"reason"`
	Evidence []Evidence `json:"evidence,omitempty"`
	// Sampled stacks, the most frequent first, and how many samples there were.
	Sampled uint64  `json:"sampled"`
	Stacks  []Stack `json:"stacks,omitempty"`
}

// Evidence is one thing that was read or seen.
type Evidence struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Source string `json:"source"`
}

// A Stack is a call stack of a program, and how often it was met.
type Stack struct {
	Count  uint64  `json:"count"`
	Frames []Frame `json:"frames"` // innermost first
}

// A Frame is one function of a stack.
type Frame struct {
	PC     uint64 `json:"pc"`
	Func   string `json:"func,omitempty"` // "" if no symbol tells
	Object string `json:"object"`         // the file it is from, or "[vdso]"
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
}

// TimerUse is what one process does with one kind of timer.
type TimerUse struct {
	Kind TimerKind `json:"kind"`
	// Func is the kernel's function that the timer calls, of its own timers.
	Func    string `json:"func,omitempty"`
	Armed   uint64 `json:"armed"`
	Expired uint64 `json:"expired"`
	// Idle is how many of those expired on a CPU that was idle, and woke it.
	Idle  uint64 `json:"expired_idle"`
	Woken uint64 `json:"woken"` // threads woken
	// Asked is the sum of the times that the timers were armed for.
	Asked time.Duration `json:"asked_ns"`
}

// Lateness is how late one kind of timer made one process's threads run, and where
// that time went. The parts of each wake-up add up to Total, but for the nanoseconds
// that the clock itself is read in.
type Lateness struct {
	Kind TimerKind `json:"kind"`
	// Slack: the kernel was allowed to wait that long, in order to wake the CPU
	// less often (prctl PR_SET_TIMERSLACK, 50 us by default).
	Slack Histogram `json:"slack"`
	// Interrupt: until the timer's interrupt ran its function. On a virtual machine
	// the host's doing is in it.
	Interrupt Histogram `json:"interrupt"`
	// Wake: until the thread was on a run queue.
	Wake Histogram `json:"wake"`
	// Throttled: its cgroup had used up its CPU quota.
	Throttled Histogram `json:"throttled"`
	// RunQueue: other threads had the CPU.
	RunQueue Histogram `json:"run_queue"`
	// Total is from what was asked for until the thread ran.
	Total Histogram `json:"total"`
}

// Wait is how long threads were runnable and did not run.
type Wait struct {
	Throttled Histogram `json:"throttled"`
	RunQueue  Histogram `json:"run_queue"`
}

// A Quota is the CPU quota of a cgroup, the tightest of a process's own and those
// above it, and what it did since the tracer met the cgroup.
type Quota struct {
	Path string `json:"path"`
	// File is the one that sets it: cpu.max, or cpu.cfs_quota_us for version 1.
	File   string        `json:"file"`
	Quota  time.Duration `json:"quota_ns"` // CPU time per Period
	Period time.Duration `json:"period_ns"`
	// Periods in which the cgroup ran, those in which it was throttled, and for
	// how long its CPUs stood still, summed.
	Periods   uint64        `json:"periods"`
	Throttles uint64        `json:"throttled"`
	Throttled time.Duration `json:"throttled_ns"`
}

// CPUs is how many CPUs the quota allows.
func (q *Quota) CPUs() float64 {
	if q.Period <= 0 {
		return 0
	}
	return float64(q.Quota) / float64(q.Period)
}

// A CPUProfile says where samples found a process's threads.
type CPUProfile struct {
	User      uint64 `json:"user"`       // in its own code
	VDSO      uint64 `json:"vdso"`       // reading a clock in the vDSO
	ClockCall uint64 `json:"clock_call"` // reading one in a system call
	Kernel    uint64 `json:"kernel"`     // in the kernel otherwise
	// Stacks are of the samples that read a clock, the most frequent first.
	Stacks []Stack `json:"stacks,omitempty"`
}

// Samples is how many there were.
func (p *CPUProfile) Samples() uint64 { return p.User + p.VDSO + p.ClockCall + p.Kernel }

// ClockShare is the part of the CPU time that goes into reading clocks.
func (p *CPUProfile) ClockShare() float64 {
	if p.Samples() == 0 {
		return 0
	}
	return float64(p.VDSO+p.ClockCall) / float64(p.Samples())
}

// A GoScheduler is the state of a Go program's scheduler; of a program that has
// ended, as it was at most Options.Interval before.
type GoScheduler struct {
	Version    string `json:"version"`
	GOMAXPROCS int    `json:"gomaxprocs"`
	IdlePs     int    `json:"idle_ps"`
	// Queued is how many goroutines wait in the global run queue.
	Queued int `json:"queued"`
	// Latency is how long goroutines were runnable before they ran. The runtime
	// looks at one in eight.
	Latency Histogram `json:"latency"`
	// Absent says what could not be read and why; "" if all could.
	Absent string `json:"absent,omitempty"`
}

// Process returns the process with this id, or nil.
func (s *Snapshot) Process(pid int) *Process {
	for i := range s.Processes {
		if s.Processes[i].PID == pid {
			return &s.Processes[i]
		}
	}
	return nil
}

// Overhead is the CPU time that the hooks took.
func (s *Snapshot) Overhead() time.Duration {
	var d time.Duration
	for _, h := range s.Hooks {
		d += h.Time
	}
	return d
}
