package shard

import "golang.org/x/sys/unix"

// cpuTime returns the CPU time of the calling thread in nanoseconds: it does not
// pass while the thread waits for a CPU that others have.
func cpuTime() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		panic(err)
	}
	return ts.Nano()
}
