package trace

import (
	"fmt"
	"strings"
	"time"
)

// Options say whom and what to watch. The zero value watches all processes, with
// DefaultFeatures.
type Options struct {
	// PIDs are the processes to follow, all their threads. Empty, with Cgroup
	// empty as well: all processes of the machine.
	PIDs []int
	// Cgroup is the directory of a cgroup, below /sys/fs/cgroup: its processes
	// and those of the cgroups below it are followed, as they come and go.
	Cgroup string
	// Children follows what the PIDs start from now on, too.
	Children bool

	// Features is what is watched; 0 means DefaultFeatures.
	Features Features
	// Late sends an EventLate for each wake-up by a timer that is later than
	// this; 0 sends none. Bounded: what the reader of Events does not take in time
	// is dropped and counted.
	Late time.Duration
	// Interval is how often the clock's state is looked at, a cgroup's processes
	// are listed, and ended processes are gathered; 0 means a second.
	Interval time.Duration
	// MaxProcesses bounds the tables in the kernel, which are allocated at once,
	// some 10 kB for each; 0 means 1024. What does not fit is in
	// Snapshot.Dropped.
	MaxProcesses int
	// ProfileHz is how often a thread that runs is sampled under WatchProfile; 0 means
	// 99 a second.
	ProfileHz int
}

// Features are things to watch, to be combined with |.
type Features uint

const (
	// WatchClockCalls counts system calls that read a clock, by process and clock, and
	// samples the stacks that they come from.
	WatchClockCalls Features = 1 << iota
	// WatchLateness splits the time between a timer's deadline and its thread's
	// running into its parts.
	WatchLateness
	// WatchTimers counts the timers that are armed and expire, by process and kind.
	WatchTimers
	// WatchClockChanges sends events when the clocksource changes, and when the clock
	// is set or slewed. It needs no privilege.
	WatchClockChanges
	// WatchGoScheduler reads, from the memory of the followed Go programs, how long
	// their goroutines wait for a P. It stops and slows nothing. It is not for
	// all processes: it reads each program's debugging information.
	WatchGoScheduler

	// WatchCallTimes measures how long the kernel takes for a system call that reads a
	// clock. On request: two more programs on every system call.
	WatchCallTimes
	// WatchProfile samples where the PIDs spend their CPU time, as far as it is to do
	// with clocks, and from where. On request, and for PIDs only: 3 us for each
	// sample.
	WatchProfile
	// WatchGoTimers measures the lateness of package time's timers in the PIDs that
	// are Go programs, by probes on functions of their runtime. On request: half a
	// microsecond for each timer that fires.
	WatchGoTimers

	DefaultFeatures = WatchClockCalls | WatchLateness | WatchTimers | WatchClockChanges | WatchGoScheduler
)

var featureNames = []string{
	"clock-calls", "lateness", "timers", "clock-changes", "go-scheduler", "call-times", "profile", "go-timers",
}

// FeatureNames returns the names that ParseFeatures takes.
func FeatureNames() []string { return append([]string(nil), featureNames...) }

// String lists the features by name, with commas.
func (f Features) String() string {
	var names []string
	for i, name := range featureNames {
		if f&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ",")
}

// ParseFeatures reads what String writes; a "+" before the first name adds to the
// default ones.
func ParseFeatures(s string) (Features, error) {
	var f Features
	if rest, ok := strings.CutPrefix(s, "+"); ok {
		f, s = DefaultFeatures, rest
	}
next:
	for _, word := range strings.Split(s, ",") {
		for i, name := range featureNames {
			if word == name {
				f |= 1 << i
				continue next
			}
		}
		return 0, fmt.Errorf("trace: no feature %q; there are %s", word, strings.Join(featureNames, ", "))
	}
	return f, nil
}
