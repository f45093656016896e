// Package timer is package time's timers, tickers and sleeps for programs that
// need more of them: millions at once, at a cost that does not grow with their
// number, or precise to the kernel's own timers, chosen for each timer.
//
// # What it promises
//
//   - Package time's names, signatures and behaviour. Replace time.AfterFunc by
//     timer.AfterFunc and nothing else changes; the differences are listed below.
//   - Never early: no timer fires before its duration has passed on the monotonic
//     clock (CLOCK_MONOTONIC on Linux), or on the [Clock] of its service.
//   - Nothing lost: a timer that is not stopped fires exactly once for each start,
//     and Stop returns true exactly when it will not.
//   - Precise sleeps: timer.Sleep(50*time.Microsecond) on an idle Linux machine
//     returns some tens of microseconds late, where time.Sleep is a whole
//     millisecond late. No thread waits for a sleeper.
//   - Flat cost: starting, stopping and pushing back a timer costs about the same
//     with ten million pending as with none, with one small allocation (the
//     *Timer), and never waits for a scan of the others.
//   - A callback that blocks, or ends its goroutine, delays no other timer by more
//     than a few milliseconds, or log2(n) times as much where n of them block at
//     the same time; the first to do so after a long run of short ones may delay
//     those of the same P by 10 ms.
//   - It does not tick: with no timer due, nothing runs.
//
// # Slack
//
// Every timer has a slack: how much later than its deadline it may fire for the
// engine's sake. Unless told otherwise it is a thousandth of the duration, as
// Linux allows itself for select(2), of which no more than a millisecond or an
// eighth is used on purpose. So a sleep of 50 microseconds is precise, and a timeout of a minute is
// cheap. [Service.WithSlack] and [Options] set it:
//
//	precise := timer.Default().WithSlack(0)
//	precise.AfterFunc(100*time.Millisecond, frame)
//
//	relaxed := timer.Default().WithSlack(time.Second)
//	relaxed.AfterFunc(time.Minute, expire)
//
// Precision is paid for: each exact deadline is a wake-up of its own, and a
// system call to ask for it. A program that starts twenty thousand exact timers a
// second spends more on them than it would with package time, which fires them
// in batches of a millisecond.
//
// # Services
//
// The functions of the package use one [Service], which starts when it is first
// used. [New] makes others, with options, statistics and an end of their own.
//
// # Deadlines
//
// What takes a duration has a brother that takes a time: [SleepUntil],
// [NewTimerAt], [AfterFuncAt], [Timer.ResetAt]. A loop that goes from one deadline
// to the next does not drift. [SleepContext] and [SleepUntilContext] end early when
// a context is done.
//
// # Ticks
//
// A [Ticker] is package time's. An [Interval] is one whose ticks are taken: it
// says what becomes of those that were missed, counts them, has the exact time of
// each, and can be aligned to the wall clock. [TickFunc] calls a function for each.
//
// # Lanes
//
// While every P of the Go scheduler is busy, timers wait for it. [NewLane] makes a
// service with an OS thread of its own that calls the callbacks of its timers: for
// the few that have to be on time whatever the rest of the program does.
// [Service.WithSpin] and [LaneOptions].Spin take the lateness from tens of
// microseconds to one, and CPU time for it.
//
// # Clocks
//
// [Options].Clock makes a service whose timers go on counting while the system is
// suspended ([Boottime]), or go by the wall clock ([Realtime]): these fire at a time
// of day and follow when the clock is set.
//
//	nightly, err := timer.New(&timer.Options{Clock: timer.Realtime})
//	...
//	nightly.AfterFuncAt(time.Date(2027, 1, 1, 3, 0, 0, 0, time.Local), rotate)
//
// # Contexts
//
// [WithTimeout] and the like are package context's, on these timers, and mix
// with package context's own contexts in any order: see [Service.WithDeadline].
//
// # Queues
//
// A [Queue] keeps deadlines for values instead of closures: the form for millions
// of them.
//
// # Embedded timers
//
// An [Embedded] timer is a field of its user's struct and calls a method of it:
// for connections, leases and sessions, without an allocation.
//
// # When to stay with package time
//
// A program with some hundreds of timers, none of them below a millisecond, gains
// nothing here. Package time is also right where timers must work under a
// scheduler of one's own making, or have to be collected by the next garbage
// collection when nobody refers to them: see below.
//
// # What differs from package time
//
//   - The channel of a Timer or Ticker has a buffer of one. Stop and Reset empty
//     it under the lock that sends, so no stale value is ever received; but len(C)
//     and cap(C) are not 0, which only the runtime can arrange.
//   - A pending Timer made by [NewTimer] or [After] that nobody refers to any more is
//     collected some three garbage collections later rather than in the next one;
//     in a portable build, and by a [Manual] service, it is kept until it fires or is
//     stopped, as in Go before 1.23.
//   - Callbacks run as if each in its own goroutine, but several may run on one
//     goroutine after another. A callback that calls runtime.LockOSThread must
//     unlock before it returns.
//   - The message of a panic begins with "timer:" where package time's begins
//     with "time:". A nil callback panics in AfterFunc rather than later.
//   - The GODEBUG setting asynctimerchan has no effect.
//   - Once a precise timer has been started, a goroutine waits for the timerfd in
//     the netpoller: the runtime does not report a deadlock of all others.
//
// # Observing
//
// [Service.Stats] counts, and tells how late timers are and whose fault it is.
// [SetProfileFraction] profiles who has made the pending timers. While
// an execution trace is recorded (package runtime/trace), each callback is a region
// of it, named after the function, with the deadline and the lateness as log
// messages. Callbacks run without profiler labels, and those that one sets end with
// it.
//
// # Testing
//
// A [Manual] is a service on virtual time, which the test moves on.
//
// Inside a testing/synctest bubble, everything works on the bubble's fake time: a
// timer made there is one of package time underneath, does not use the engine
// and is not counted in [Stats]. A Timer or Ticker made outside a bubble can be
// stopped inside, but not reset.
//
// # Caveats
//
// CLOCK_MONOTONIC does not count while the system is suspended: a timer of ten
// minutes fires ten minutes of wakefulness later, but for one of a [Boottime] or
// [Realtime] service. A virtual machine that is
// paused, a container that has used up its CPU quota, or a program whose Ps are
// all busy fires timers late: see [Stats].Lateness, and [Blame] for whose fault it
// is. While every P is busy, timers
// wait for the Go scheduler as package time's do, but for those of a lane.
//
// # Systems
//
// On Linux the engine is woken by a timerfd in the Go netpoller, with a timer of
// package time behind it. On other systems, and with the build tag
// detent_portable, which also avoids linkname, unsafe and system calls of its
// own, it is woken by package time's timers alone: all guarantees hold, and a
// timer is as precise as package time's.
package timer
