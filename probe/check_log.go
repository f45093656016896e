package probe

import (
	"context"
	"fmt"
	"time"

	"github.com/detent-go/detent/internal/hostfs"
)

// The check of what the kernel's log says about lateness. It has LogData.
var logCheck = Check{
	Name:  "log",
	About: "what the kernel's log says that made timers late: lockups, stalls, long interrupts, throttled real-time threads",
	Run: func(_ context.Context, e *Env) Result {
		if err := e.linux(); err != nil {
			return Result{Err: err}
		}
		log, err := e.kernelLog()
		if err != nil && len(log.Lines) == 0 {
			return Result{Err: err}
		}
		d := &LogData{Source: log.Source, Whole: log.Whole, Lines: len(log.Lines), Events: readEvents(log)}
		d.Uptime, _ = hostfs.Uptime(e.Root)
		return Result{Err: err, Data: d, Findings: judgeLog(d)}
	},
}

// LogData is the data of the check "log".
type LogData struct {
	Source string `json:"source"`
	Whole  bool   `json:"whole"` // it goes back to the machine's start
	Lines  int    `json:"lines"`
	// Uptime is how long ago the machine started; 0: unknown.
	Uptime time.Duration `json:"uptime_ns"`
	// Events are by kind, those that there were.
	Events []LogEvent `json:"events"`
}

// A LogEvent is a kind of trouble that the kernel has reported.
type LogEvent struct {
	Kind  EventKind     `json:"kind"`
	Count int           `json:"count"`
	First time.Duration `json:"first_ns"` // since the machine's start; -1: the log does not say
	Last  time.Duration `json:"last_ns"`
	// Longest is the worst figure among them, of the kinds that have one.
	Longest time.Duration `json:"longest_ns,omitempty"`
	Line    string        `json:"line"` // the last one
}

// EventKind names what the kernel reports.
type EventKind string

const (
	EventLongInterrupt  EventKind = "long-interrupt"  // the timer interrupt took too long
	EventLockup         EventKind = "lockup"          // a CPU did not schedule for seconds
	EventStall          EventKind = "stall"           // RCU waited for a CPU for many seconds
	EventRealtime       EventKind = "realtime"        // real-time threads used up their share
	EventUncompared     EventKind = "uncompared"      // clocks could not be compared: something held up the CPU
	EventHogged         EventKind = "hogged"          // work of the kernel's kept a CPU for long
	EventHeat           EventKind = "heat"            // a CPU was slowed down for its temperature
	EventClocksDisagree EventKind = "clocks-disagree" // CPUs ahead of or behind others
)

// eventOf recognizes a line.
func eventOf(text string) (kind EventKind, figure time.Duration, ok bool) {
	has := func(parts ...string) bool { return containsAll(text, parts) }
	switch {
	case has("hrtimer: interrupt took "):
		ns, _ := number(text, "interrupt took ")
		return EventLongInterrupt, time.Duration(ns), true
	case has("BUG: soft lockup", "stuck for "):
		s, _ := number(text, "stuck for ")
		return EventLockup, time.Duration(min(max(0, s), 1<<30)) * time.Second, true
	case has("hard LOCKUP"), has("BUG: workqueue lockup"):
		return EventLockup, 0, true
	case has("rcu", "self-detected stall"), has("rcu", "detected stalls on CPUs"):
		return EventStall, 0, true
	case has("sched: RT throttling activated"), has("sched: DL replenish lagged too much"):
		return EventRealtime, 0, true
	case has("clock-skew test skipped"):
		ns, _ := number(text, "read-back delay of ")
		return EventUncompared, time.Duration(ns), true
	case has("Long readout interval, skipping watchdog check"):
		ns, _ := number(text, "cs_nsec: ")
		return EventUncompared, time.Duration(ns), true
	case has("hogged CPU for >"):
		us, _ := number(text, "hogged CPU for >")
		return EventHogged, time.Duration(min(max(0, us), 1<<40)) * time.Microsecond, true
	case has("temperature above threshold", "throttled"):
		return EventHeat, 0, true
	case has("CPUs ", " CPU ", "for clocksource ") && (has(" ahead of ") || has(" behind ")):
		return EventClocksDisagree, 0, true
	}
	return "", 0, false
}

func readEvents(log *hostfs.Log) []LogEvent {
	var events []LogEvent
	at := map[EventKind]int{}
	for _, l := range log.Lines {
		kind, figure, ok := eventOf(l.Text)
		if !ok {
			continue
		}
		i, seen := at[kind]
		if !seen {
			i = len(events)
			at[kind] = i
			events = append(events, LogEvent{Kind: kind, First: l.At})
		}
		e := &events[i]
		e.Count++
		e.Last, e.Line, e.Longest = l.At, l.String(), max(e.Longest, figure)
	}
	return events
}

// old is when an event is no longer what makes timers late today.
const old = 24 * time.Hour

func judgeLog(d *LogData) []Finding {
	var found []Finding
	for _, e := range d.Events {
		var f Finding
		switch e.Kind {
		case EventLongInterrupt:
			if e.Longest < 100*time.Microsecond {
				continue // as on any machine with many timers
			}
			f = Finding{
				ID: "log.long-interrupt", Severity: Notice,
				Title:  fmt.Sprintf("a timer interrupt took %s: very many timers at once, or the CPU was taken away meanwhile", short(e.Longest)),
				Detail: "The kernel says so once, the first time.",
				Remedy: []string{"in a virtual machine, look at steal time (the check contention); on bare metal, look for system management interrupts: turbostat --show SMI -i 1, and switch off what causes them in the firmware"},
			}
			if e.Longest < time.Millisecond {
				f.Severity = Info
			}
		case EventLockup:
			f = Finding{
				ID: "log.lockup", Severity: Warning,
				Title:  fmt.Sprintf("a CPU did nothing else for seconds, %s", plural(e.Count, "time")),
				Detail: "Every timer of that CPU was as late.",
				Remedy: []string{"the lines after it in the kernel's log show where it was: dmesg | grep -A30 -i lockup; in a virtual machine, the host may have stopped it: look at steal time and at snapshots"},
			}
			if e.Longest > 0 {
				f.Title = fmt.Sprintf("a CPU did nothing else for %s, %s", e.Longest, plural(e.Count, "time"))
			}
		case EventStall:
			f = Finding{
				ID: "log.rcu-stall", Severity: Warning,
				Title:  fmt.Sprintf("the kernel waited in vain for a CPU, %s", plural(e.Count, "time")),
				Remedy: []string{"the lines after it in the kernel's log show where that CPU was: dmesg | grep -A30 'rcu.*stall'; a real-time thread that spins does this as well"},
			}
		case EventRealtime:
			f = Finding{
				ID: "log.realtime-throttled", Severity: Notice,
				Title:  "real-time threads used up their share of a CPU and were stopped",
				Detail: "A real-time thread stood still for up to a twentieth of a second, a lane with a priority included.",
				Remedy: []string{"find the real-time thread that spins: ps -eLo cls,rtprio,pcpu,comm | grep -e FF -e RR; give it a pause, or a CPU of its own and sysctl kernel.sched_rt_runtime_us=-1"},
			}
		case EventUncompared:
			f = Finding{
				ID: "log.clocks-not-compared", Severity: Info,
				Title:  fmt.Sprintf("the kernel could not compare its clocks, %s: something held up the CPU", plural(e.Count, "time")),
				Detail: "System management mode, a hypervisor that took the CPU away, or a very busy machine.",
			}
			if e.Longest > 0 {
				f.Title += " for up to " + short(e.Longest)
			}
		case EventHogged:
			f = Finding{
				ID: "log.kernel-hogs-cpu", Severity: Info,
				Title:  fmt.Sprintf("work of the kernel's kept a CPU for more than %s at a time", short(e.Longest)),
				Remedy: []string{"the line names the function: see which driver it belongs to, and whether a newer kernel does it otherwise"},
			}
		case EventHeat:
			f = Finding{
				ID: "log.heat", Severity: Info,
				Title:  fmt.Sprintf("CPUs were slowed down for their temperature, %s", plural(e.Count, "time")),
				Remedy: []string{"look at the machine's cooling: turbostat --show PkgTmp,Bzy_MHz"},
			}
		case EventClocksDisagree:
			f = Finding{
				ID: "log.clocks-disagree", Severity: Warning,
				Title:  "the kernel found clocks of CPUs ahead of or behind others",
				Remedy: []string{"update the machine's firmware; the check of the counters' offsets measures how far apart they are"},
			}
		}
		if d.Uptime > 0 && e.Last >= 0 && d.Uptime-e.Last > old {
			f.Severity = max(Info, f.Severity-1)
			f.Title += fmt.Sprintf(", last %s ago", short(d.Uptime-e.Last))
		}
		f.Confidence = Certain
		f.Evidence = []Evidence{{"kernel's log", e.Line, d.Source}}
		if e.Count > 1 {
			f.Evidence = append(f.Evidence, Evidence{"how often", plural(e.Count, "time"), d.Source})
		}
		found = append(found, f)
	}
	return found
}
