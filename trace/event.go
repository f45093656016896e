package trace

import (
	"fmt"
	"time"
)

// An EventKind says what an event is.
type EventKind string

// The kinds of events.
const (
	// EventLate: a timer's thread ran later than Options.Late. Event.Late.
	EventLate EventKind = "late"
	// EventBypass: a process has made its first system call for a clock. Event.Call
	// and Clock.
	EventBypass EventKind = "clock-call"
	// EventExec and EventExit: a followed process runs another program, or has
	// ended; not where all processes are watched.
	EventExec EventKind = "exec"
	EventExit EventKind = "exit"
	// EventClocksource: the kernel reads another counter now. Event.Was and Is.
	EventClocksource EventKind = "clocksource"
	// EventStep: the wall clock has been set. Event.Step.
	EventStep EventKind = "step"
	// EventSlew: the clock's rate has been changed. Event.Was and Is.
	EventSlew EventKind = "slew"
	// EventMessage: the kernel has logged something about its clocks. Event.Text.
	EventMessage EventKind = "kernel-message"
)

// An Event is something that has happened.
type Event struct {
	Time time.Time `json:"time"`
	Kind EventKind `json:"event"`
	PID  int       `json:"pid,omitempty"`
	Comm string    `json:"comm,omitempty"`
	Late *LateWake `json:"late,omitempty"`
	// Call and Clock are as in ClockCalls.
	Call  string `json:"call,omitempty"`
	Clock string `json:"clock,omitempty"`
	// The state before and after.
	Was *ClockPart `json:"was,omitempty"`
	Is  *ClockPart `json:"is,omitempty"`
	// Step is how far the wall clock has been set; negative: back.
	Step time.Duration `json:"step_ns,omitempty"`
	Text string        `json:"text,omitempty"`
}

// A ClockPart is the part of the clock's state that an event is about.
type ClockPart struct {
	Clocksource string `json:"clocksource,omitempty"`
	// PPM is how many microseconds a second the clock's rate is changed by:
	// its frequency correction.
	PPM float64 `json:"ppm"`
	// Offset is what is still to be made up for by slewing.
	Offset time.Duration `json:"offset_ns,omitempty"`
	// Tick is the microseconds of a kernel's tick, 10000 if nobody has slewed by
	// it.
	Tick int64 `json:"tick_us,omitempty"`
}

// A LateWake is a wake-up by a timer that was late, with its parts, as in Lateness.
type LateWake struct {
	TID       int           `json:"tid"`
	CPU       int           `json:"cpu"`
	Kind      TimerKind     `json:"kind"`
	Slack     time.Duration `json:"slack_ns"`
	Interrupt time.Duration `json:"interrupt_ns"`
	Wake      time.Duration `json:"wake_ns"`
	Throttled time.Duration `json:"throttled_ns"`
	RunQueue  time.Duration `json:"run_queue_ns"`
	Total     time.Duration `json:"total_ns"`
	// Before is what had the CPU until the thread ran; PID 0 is the idle CPU.
	BeforePID int    `json:"before_pid"`
	Before    string `json:"before,omitempty"`
}

// String is the event in one line.
func (e Event) String() string {
	switch e.Kind {
	case EventLate:
		l := e.Late
		return fmt.Sprintf("%s[%d] ran %v late after %s: slack %v, interrupt %v, wake %v, throttled %v, run queue %v (before it: %s[%d])",
			e.Comm, e.PID, l.Total, l.Kind, l.Slack, l.Interrupt, l.Wake, l.Throttled, l.RunQueue, l.Before, l.BeforePID)
	case EventBypass:
		calls := "system calls"
		if e.Call != "clock_gettime" {
			calls += " (" + e.Call + ")"
		}
		return fmt.Sprintf("%s[%d] reads the clock %s by %s", e.Comm, e.PID, e.Clock, calls)
	case EventExec:
		return fmt.Sprintf("%d runs %s now", e.PID, e.Comm)
	case EventExit:
		return fmt.Sprintf("%s[%d] has ended", e.Comm, e.PID)
	case EventClocksource:
		return fmt.Sprintf("clocksource %s, was %s", e.Is.Clocksource, e.Was.Clocksource)
	case EventStep:
		return fmt.Sprintf("the wall clock was set by %v", e.Step)
	case EventSlew:
		return fmt.Sprintf("the clock's rate: %+.3f ppm (was %+.3f), tick %d us (was %d), %v to make up", e.Is.PPM, e.Was.PPM, e.Is.Tick, e.Was.Tick, e.Is.Offset)
	}
	return e.Text
}
