package timer

import (
	"fmt"
	"time"

	"github.com/detent-go/detent/internal/shard"
)

// LaneOptions are the settings of a lane: see [NewLane]. The zero value holds the
// defaults, which every process may have; the others need Linux, and a build without
// the tag detent_portable. What cannot be had is an error of NewLane, never left
// out silently.
type LaneOptions struct {
	// Slack is as for [Options]; but the default, nil, is 0: every timer is
	// exact. [Service.WithSlack] makes a view with another one, for timers that may
	// share a wake-up.
	Slack *time.Duration

	// Priority is the priority of the thread in the scheduling class SCHED_FIFO,
	// from 1 to 99; 0, the default, leaves the thread in the class of all others.
	// The kernel runs such a thread before all that have less, until it waits. It
	// takes the capability CAP_SYS_NICE or a limit RLIMIT_RTPRIO of as much, and
	// with CONFIG_RT_GROUP_SCHED a cgroup that has a share of real time.
	//
	// Threads of the Go runtime keep their priority: a callback that needs one of
	// them waits for it. Do not bind a lane with a priority to a CPU on which the
	// others must run: where the collector's thread has been pushed aside while it
	// scans the lane's stack, both stand still until the kernel throttles
	// real-time threads (sched_rt_runtime_us).
	Priority int

	// CPUs are the numbers of those that the thread may run on. The default, nil,
	// is those of the process. What a callback executes as another program inherits
	// them.
	CPUs []int

	// LockMemory keeps the memory of the process from being paged out, all of it
	// and what it comes to use later (mlockall with MCL_ONFAULT): so a callback
	// never waits for a disk. It takes the capability CAP_IPC_LOCK, or an
	// RLIMIT_MEMLOCK that is enough. It stays in force when the lane is closed.
	LockMemory bool

	// Spin has the thread sleep short of each deadline and spin the rest: late by
	// a microsecond where otherwise it is late by tens. See [Service.WithSpin] for
	// how far ahead, and what that costs.
	Spin bool

	// ShareP has the thread never keep its P while it waits, however much later it
	// gets one then: see [NewLane].
	ShareP bool
}

// NewLane returns a lane: a service on one OS thread of its own, which waits for
// any number of timers and calls their callbacks. It is for timers that have to be
// on time while the Go scheduler is busy, and for the few that matter more than
// others: a control loop, a pacer, a watchdog. Options of nil stand for the
// defaults.
//
// The thread waits in the kernel, for an absolute time of CLOCK_MONOTONIC and with
// a timer slack of 1 ns. It wakes for deadlines alone, and for those started that are
// earlier than what it waits for. It ends when the lane is closed.
//
// # While the Go scheduler is saturated
//
// To run Go code a thread needs a P, of which there are GOMAXPROCS. As a rule a
// lane has none while it waits, and there is one when it wakes up. Where all are
// busy, and goroutines queue for them, it would have to queue too: tens of milliseconds
// behind goroutines that compute, a second behind many that wake each other. So while
// others queue, and its next deadline is less than 100 ms away, a lane keeps its P.
//
// That costs the others one P of GOMAXPROCS, for as long as [Stats].Kept says: on a
// machine with 2 CPUs half of what they could do, on one with 16 a sixteenth. A
// program that has a lane and is busy gets it back by
//
//	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1)
//
// To stop the world it takes the signal that any goroutine takes which computes, and
// some tens of microseconds. Goroutines that the lane makes ready, sleepers for one,
// run on its P at once. Sometimes the lane loses its P: when it
// first meets a busy scheduler, when the world has been stopped, and one in 61 times
// that it has others run on it, which is after every 8 ms at least. Then it is late
// by a time slice, 10 ms, or some. A GOMAXPROCS of 1 leaves no P to keep; nor is one
// kept with GODEBUG=asyncpreemptoff=1, with LaneOptions.ShareP, and on other systems
// than Linux.
//
// Where goroutines do little but wake each other, there is no P with an empty queue
// to keep. Then a lane waits as package time does; and the Go scheduler starves a
// goroutine that is locked to a thread, now and then, for a second. For a program of
// that kind a service made by [New] is the better choice.
//
// # Callbacks
//
// Callbacks run on the thread, one after another, with the thread's settings. One
// that blocks, or takes long, holds up all timers of the lane; and one that waits for
// a timer of the lane itself, in its Sleep for one, waits for ever. A panic ends the
// program. A callback that ends its goroutine (runtime.Goexit) ends the thread too;
// another one takes over, with the same settings as far as the process may
// still have them: if not, [Stats].WakerErr says so. Since runtime.Goexit is what
// testing.T.FailNow does, that is a matter for tests mostly.
//
// Sleepers and receivers from channels are goroutines as any other: the lane makes
// them ready, and hands them its P if nobody else takes them, but the thread and its
// settings are not theirs. What has to be on time belongs in a callback.
//
// # Close
//
// Close waits until the goroutine of the lane has ended, and its thread with it,
// unless a callback is running.
//
// # Errors
//
// Options out of range, and those that this process or system does not allow:
// errors.Is finds fs.ErrPermission, fs.ErrInvalid for a CPU that is not there, or
// errors.ErrUnsupported where the system has no such thing.
//
// # Bubbles
//
// Inside a testing/synctest bubble a lane's timers are on the bubble's clock, like
// those of any service. A lane made inside makes its thread when it is first
// used outside.
func NewLane(o *LaneOptions) (*Service, error) {
	if o == nil {
		o = &LaneOptions{}
	}
	slack := time.Duration(0)
	if o.Slack != nil {
		slack = *o.Slack
	}
	switch {
	case slack < 0:
		return nil, fmt.Errorf("timer: LaneOptions.Slack is %v, want 0 or more, or nil", slack)
	case o.Priority < 0 || o.Priority > 99:
		return nil, fmt.Errorf("timer: LaneOptions.Priority is %d, want 0 to 99", o.Priority)
	case o.CPUs != nil && len(o.CPUs) == 0:
		return nil, fmt.Errorf("timer: LaneOptions.CPUs is empty, want a CPU, or nil")
	}
	g, err := shard.NewLane(shard.LaneOptions{
		Priority: o.Priority, CPUs: o.CPUs, LockMemory: o.LockMemory, Spin: o.Spin, ShareP: o.ShareP,
	})
	if err != nil {
		return nil, fmt.Errorf("timer: lane: %w", err)
	}
	return newService(&engine{group: g}, slack), nil
}
