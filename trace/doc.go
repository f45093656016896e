// Package trace says whose fault a slow clock or a late timer is, by watching the
// Linux kernel with eBPF: which processes make a system call for each reading of
// the clock, from where in their program and why; how long each part of a timer's
// lateness took; who arms the timers that wake this machine; and when the clock
// itself is changed.
//
//	t, err := trace.Start(ctx, &trace.Options{PIDs: []int{pid}})
//	if err != nil {
//		return err // says what is missing: a capability, BTF, a kernel
//	}
//	defer t.Close()
//	before, err := t.Snapshot()
//	...
//	after, err := t.Snapshot()
//	for _, p := range after.Since(before).Processes {
//		fmt.Println(p.PID, p.Comm, p.ClockCalls, p.Lateness)
//	}
//
// It returns data and prints nothing. Any program can be watched, in any
// language; it need not be prepared, and does not notice.
//
// # What it costs
//
// [Options.Features] says what is watched. A program of the kernel's runs at each
// hook, of every process, also where only one is followed: 25 to 30 ns on each
// system call for [WatchClockCalls], some hundred on each switch between threads for
// [WatchLateness], some hundred on each timer for [WatchTimers]. Nothing runs at a reading of
// the clock that makes no system call: that would cost more than the reading. What
// the programs took is in [Snapshot.Hooks], as the kernel itself counts it.
//
// [WatchCallTimes], [WatchProfile] and [WatchGoTimers] run on request only.
//
// # What it needs
//
// Linux 5.11 on amd64 or arm64 with BTF (CONFIG_DEBUG_INFO_BTF), and root, or
// CAP_BPF and CAP_PERFMON, with CAP_SYS_PTRACE to look at other users' processes
// and CAP_SYSLOG to tell kinds of timers apart. [Start] names what is missing, in
// a [*MissingError]. Each hook is tried by itself: one that this kernel does not have
// is absent in Snapshot.Hooks, with the reason, and the rest works without it. On
// other systems Start returns an error that matches errors.ErrUnsupported, and
// the package builds everywhere.
//
// The programs for arm64 are compiled from the same source, and have been run by no
// test: all that is said here was seen on amd64.
//
// # When not to use it
//
// To watch one's own timers, timer.Stats costs nothing and knows more. To know
// whether this process has a fast clock, package clock or probe measures it.
package trace
