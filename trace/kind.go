package trace

// A TimerKind says what sort of timer one is.
type TimerKind string

// The kinds of timers. The first ones are of threads that sleep in a system call
// until something happens or the time is over.
const (
	KindNanosleep TimerKind = "nanosleep"
	KindEpoll     TimerKind = "epoll"
	KindPoll      TimerKind = "poll" // poll and select
	KindFutex     TimerKind = "futex"
	KindSleep     TimerKind = "other-sleep" // in another call, or one that could not be told
	KindTimerfd   TimerKind = "timerfd"
	KindPOSIX     TimerKind = "timer_create"
	KindITimer    TimerKind = "setitimer" // alarm too
	KindKThread   TimerKind = "kernel-thread"
	KindKernel    TimerKind = "kernel" // of the kernel's own; TimerUse.Func tells
	// The kernel's coarse timers, which do not go through hrtimers.
	KindWheelSleep TimerKind = "coarse-sleep"
	KindWheel      TimerKind = "kernel-coarse"
)

// Kinds returns all of them.
func Kinds() []TimerKind {
	return []TimerKind{
		KindNanosleep, KindEpoll, KindPoll, KindFutex, KindSleep, KindTimerfd, KindPOSIX, KindITimer,
		KindKThread, KindKernel, KindWheelSleep, KindWheel,
	}
}

// ClockName names a clock by its id. The ids below zero stand for all clocks of a
// kind: those of one process or thread, which have an id each, and those of a
// device.
func ClockName(id int) string {
	names := []string{
		"realtime", "monotonic", "process-cpu", "thread-cpu", "monotonic-raw", "realtime-coarse",
		"monotonic-coarse", "boottime", "realtime-alarm", "boottime-alarm", "sgi-cycle", "tai",
	}
	switch {
	case id >= 0 && id < len(names):
		return names[id]
	case id >= 16 && id < 24:
		return "auxiliary"
	case id >= 0:
		return "unknown"
	case id&3 == 3:
		return "device"
	case id&4 != 0:
		return "another thread's cpu"
	}
	return "another process's cpu"
}

// onVDSO says that the vDSOs of amd64 and arm64 serve this clock.
func onVDSO(id int) bool {
	switch id {
	case 0, 1, 4, 5, 6, 7, 11:
		return true
	}
	return false
}
