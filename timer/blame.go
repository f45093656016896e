package timer

import "github.com/detent-go/detent/internal/shard"

// Blame says whose fault lateness is. The lateness of each timer is split into
// parts, each of which is what it waited for one cause, in the order in which
// they follow on its deadline:
//
//   - Slack, which was asked for: up to the time that the timer has to fire at
//     with its slack, where it shares a wake-up with others.
//   - Kernel: from the time that the kernel was to wake the service until it
//     had. The machine's timer was late, no CPU was free for the thread, or the
//     process or its virtual machine was stopped.
//   - Scheduler: from there until the service's goroutine ran. Every P of the Go
//     scheduler was busy, or the world was stopped. And where there is no timerfd,
//     or a timer has too much slack for it to be used, the scheduler waits in whole
//     milliseconds.
//   - Queue: from there until the timer's turn. The timers before it were many,
//     or their callbacks took long; or, for a timer that was due when it was
//     started, starting it took so long.
//
// A timer that becomes due while its shard is at work already waits in the queue
// alone.
//
// Kernel and Scheduler are told apart for a lane (see [NewLane]), exactly, and with
// [Options].Blame; both on Linux, and not in a portable build. Elsewhere, and
// otherwise, they are together in Wakeup. So they are, with Options.Blame, where its
// thread was not looking, and for timers that it does not look after: those with
// too much slack for the timerfd to be used. What it puts down to the kernel is by
// how much it has been woken late itself, or all of the wait if the service's own
// goroutine was faster: too much by what it takes to wake a thread, at most. Where
// the Go scheduler lets a timerfd wait that is ready already, all that follows is its
// part.
//
// Throttled is what of Kernel, Scheduler and Wakeup, and not counted there, the
// process was kept from running because it had used up the CPU quota of a cgroup,
// as in a container with a limit. The kernel tells only by how much that time
// grows, for all CPUs together. So what it has grown by since the last look is
// put down to the timers that come late then, each for no more than it waited:
// it is an upper bound. It is looked at (in cpu.stat of the cgroups that the process
// can see, version 1 or 2) when a wake-up is more than a millisecond late, every 5
// milliseconds at most; the first time finds nothing. What a callback is throttled
// counts as Queue of the timers behind it.
//
// All parts together add up to Lateness exactly, for each timer, and therefore
// for their sums too: Lateness.Sum() is the sum of the six. Each has a value, 0 as
// a rule, for every timer that has fired: but a timer counts either in Kernel and
// Scheduler or in Wakeup.
type Blame struct {
	Slack     Histogram
	Kernel    Histogram
	Scheduler Histogram
	Wakeup    Histogram
	Throttled Histogram
	Queue     Histogram
}

func newBlame(b *shard.Blame) Blame {
	out := Blame{
		Slack:     Histogram{&b.Slack},
		Wakeup:    Histogram{&b.Wakeup},
		Throttled: Histogram{b.Throttled},
		Queue:     Histogram{&b.Queue},
	}
	if b.Told != nil {
		out.Kernel, out.Scheduler = Histogram{&b.Told.Kernel}, Histogram{&b.Told.Scheduler}
	}
	return out
}
