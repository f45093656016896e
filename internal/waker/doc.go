// Package waker wakes a shard when its next timer is due.
//
// There are two ways, and a shard of most services uses both:
//
//   - [Backstop], a timer of package time. It costs no system call, and fires at
//     every chance that the Go scheduler gives it; but while the process is idle
//     the scheduler waits in whole milliseconds.
//   - [Precise], a timerfd that the Go netpoller watches: as accurate as the
//     kernel's own timers, without a thread or a polling loop. But a ready file
//     is looked at only when a P has nothing else to run, or by the runtime's
//     monitor every 10 ms; where every P is busy it starves.
//
// So a precise deadline is armed with both. Whoever comes first does the work,
// and the other finds nothing to do.
//
// The shard of a lane has a third one instead:
//
//   - [Lane], a goroutine on an OS thread of its own, which waits in the kernel and
//     fires the timers itself: as accurate as the kernel's timers whatever the
//     netpoller does, with the thread's priority, at the price of the thread. A
//     [Spinner] takes it from tens of microseconds to one, at the price of CPU time.
//
// All this counts the runtime's monotonic time. A Precise can wait for another
// [Clock], and a [Watch] notices when that goes apart from monotonic time, because
// it has been set or the system suspended; then backstops have to be armed anew.
//
// A [Witness] wakes nobody. It tells when the kernel had done its part of a wake-up
// by timerfd, which the netpoller does not.
//
// Where there is no timerfd, on other systems than Linux and in builds with the
// tag detent_portable, [NewPrecise] fails with errors.ErrUnsupported and the
// backstop serves alone; a lane then waits for a timer of package time. There is no
// Watch either, and no Clock but the monotonic one and the wall clock.
package waker
