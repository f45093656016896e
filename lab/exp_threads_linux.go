package lab

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// threads returns the number of threads of this process.
func threads() (int, error) {
	list, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errNoThreads, err)
	}
	return len(list), nil
}

// inNanosleep has n goroutines sleep in the kernel, and counts threads. A runtime
// that gives threads back would do so at a garbage collection or when its monitor
// comes by: it is given half a second and two collections.
func inNanosleep(n int, locked bool) (before, during, after int, err error) {
	if before, err = threads(); err != nil {
		return
	}
	var wg, asleep sync.WaitGroup
	asleep.Add(n)
	const long = 300 * time.Millisecond
	for range n {
		wg.Go(func() {
			if locked {
				runtime.LockOSThread() // and never unlocked
			}
			asleep.Done()
			ts := unix.NsecToTimespec(int64(long))
			_ = unix.Nanosleep(&ts, nil) // A signal ends it sooner.
		})
	}
	asleep.Wait()
	for range 100 {
		now, e := threads()
		if e != nil {
			return before, during, 0, e
		}
		during = max(during, now)
		time.Sleep(time.Millisecond)
	}
	wg.Wait()
	runtime.GC()
	runtime.GC()
	time.Sleep(500 * time.Millisecond)
	after, err = threads()
	return
}
