//go:build linux && !detent_portable

package waker

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"golang.org/x/sys/unix"
)

// mainThread reports whether the caller runs on the main thread.
func mainThread() bool { return unix.Gettid() == unix.Getpid() }

// maxCPUs is what a unix.CPUSet has room for.
const maxCPUs = 1024

// apply makes the calling thread as the options say.
func (o *LaneOptions) apply() error {
	// 1 ns is the least: 0 stands for the default, 50 us.
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("timer slack of 1 ns: %w", err)
	}
	if o.CPUs != nil {
		if err := o.setCPUs(); err != nil {
			return err
		}
	}
	if o.Priority != 0 {
		attr := unix.SchedAttr{
			Size:   unix.SizeofSchedAttr,
			Policy: unix.SCHED_FIFO,
			// What a callback starts does not inherit the priority.
			Flags:    unix.SCHED_FLAG_RESET_ON_FORK,
			Priority: uint32(o.Priority),
		}
		if err := unix.SchedSetAttr(0, &attr, 0); err != nil {
			return fmt.Errorf("SCHED_FIFO priority %d: %w", o.Priority, err)
		}
	}
	if o.LockMemory {
		// Pages are locked as they are first used: without MCL_ONFAULT all that
		// the Go heap reserves would be filled with memory.
		if err := unix.Mlockall(unix.MCL_CURRENT | unix.MCL_FUTURE | unix.MCL_ONFAULT); err != nil {
			return fmt.Errorf("mlockall: %w", lockError(err))
		}
	}
	return nil
}

// setCPUs binds the thread to o.CPUs, all of which the process must be allowed to
// use: of those that it is not the kernel would make nothing.
func (o *LaneOptions) setCPUs() error {
	var want, got unix.CPUSet
	for _, cpu := range o.CPUs {
		if cpu < 0 || cpu >= maxCPUs {
			return fmt.Errorf("CPU %d: %w", cpu, fs.ErrInvalid)
		}
		want.Set(cpu)
	}
	if err := unix.SchedSetaffinity(0, &want); err != nil {
		if errors.Is(err, unix.EINVAL) {
			err = fmt.Errorf("%w: %w", fs.ErrInvalid, err)
		}
		return fmt.Errorf("CPUs %v: %w", o.CPUs, err)
	}
	if err := unix.SchedGetaffinity(0, &got); err != nil {
		return fmt.Errorf("CPUs %v: %w", o.CPUs, err)
	}
	if i := slices.IndexFunc(o.CPUs, func(cpu int) bool { return !got.IsSet(cpu) }); i >= 0 {
		return fmt.Errorf("CPU %d is not there for this process: %w", o.CPUs[i], fs.ErrInvalid)
	}
	return nil
}

// lockError returns the error of mlockall as one of permission where a limit is
// to blame.
func lockError(err error) error {
	var limit unix.Rlimit
	if errors.Is(err, unix.ENOMEM) && unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit) == nil && limit.Cur != unix.RLIM_INFINITY {
		return fmt.Errorf("more than the %d bytes of RLIMIT_MEMLOCK: %w: %w", limit.Cur, fs.ErrPermission, err)
	}
	return err
}
