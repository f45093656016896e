package lab

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// onCPUs calls f while all threads of this process, also those that start meanwhile,
// have two CPUs to choose from, and gives them back what they had.
func onCPUs(a, b int, f func()) error {
	var before, pair unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return err
	}
	pair.Set(a)
	pair.Set(b)
	if err := allThreads(&pair); err != nil {
		return errors.Join(err, allThreads(&before))
	}
	f()
	return allThreads(&before)
}

// allThreads sets on which CPUs the threads of this process may run. One that starts
// meanwhile has what the one has that starts it: it is looked at again until none is
// new.
func allThreads(set *unix.CPUSet) error {
	for done := map[int]bool{}; ; {
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		news := false
		for _, task := range tasks {
			tid, err := strconv.Atoi(task.Name())
			if err != nil || done[tid] {
				continue
			}
			done[tid], news = true, true
			if err := unix.SchedSetaffinity(tid, set); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("sched_setaffinity: %w", err)
			}
		}
		if !news {
			return nil
		}
	}
}
