package prom

import (
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// maxCPUs bounds the number of CPUs that are looked at, and of series.
const maxCPUs = 256

// forEachCPU calls f on each CPU that this process may use, one after another.
// Where threads may not be moved, it calls f once, wherever it is.
func forEachCPU(f func(cpu string)) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		// Never unlocked: the thread ends with the goroutine, and nobody has to
		// run where it has been moved to.
		runtime.LockOSThread()
		visitCPUs(f)
	}()
	<-done
}

func visitCPUs(f func(cpu string)) {
	seen := 0
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err == nil {
		for cpu := 0; cpu < len(all)*64 && seen < maxCPUs; cpu++ {
			var one unix.CPUSet
			one.Set(cpu)
			if !all.IsSet(cpu) || unix.SchedSetaffinity(0, &one) != nil {
				continue // The CPU has gone, or threads may not be moved.
			}
			seen++
			f(strconv.Itoa(cpu))
		}
	}
	if seen == 0 {
		f("unknown")
	}
}

// systemCall returns what reading the clock by system call costs at the least;
// 0 if it cannot be told.
func systemCall() time.Duration {
	const calls = 4
	least := time.Duration(1<<63 - 1)
	for range 16 {
		var ts unix.Timespec
		begin := time.Now()
		for range calls {
			if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
				return 0
			}
		}
		least = min(least, time.Since(begin))
	}
	return least / calls
}
