package probe

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// kernelWays are those that go past the engines.
func kernelWays() []way {
	return []way{
		{name: SleepNanosleep, run: nanosleeps, slack: threadSlack},
		{name: SleepPrecise, run: preciseNanosleeps, slack: threadSlack},
		{name: SleepTimerfd, run: timerfdSleeps},
	}
}

// threadSlack returns the timer slack of the calling thread, 0 if unknown.
func threadSlack() time.Duration {
	ns, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if err != nil {
		return 0
	}
	return time.Duration(ns)
}

func nanosleeps(d time.Duration, more func() bool, record func(int64)) error {
	s := newStopwatch()
	for more() {
		began := s.ns()
		left := unix.NsecToTimespec(int64(d))
		for {
			err := unix.Nanosleep(&left, &left)
			if err == nil {
				break
			}
			// The runtime's own signals interrupt it.
			if !errors.Is(err, unix.EINTR) {
				return fmt.Errorf("nanosleep: %w", err)
			}
		}
		record(s.ns() - began - int64(d))
	}
	return nil
}

// preciseNanosleeps ends with a thread whose slack must not be another goroutine's:
// it is locked, and ends.
func preciseNanosleeps(d time.Duration, more func() bool, record func(int64)) error {
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("prctl(PR_SET_TIMERSLACK): %w", err)
	}
	return nanosleeps(d, more, record)
}

func timerfdSleeps(d time.Duration, more func() bool, record func(int64)) error {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return fmt.Errorf("timerfd_create: %w", err)
	}
	f := os.NewFile(uintptr(fd), "timerfd")
	defer f.Close()
	// Only a file that the netpoller watches takes deadlines; another would
	// block a thread.
	if err := f.SetReadDeadline(time.Time{}); err != nil {
		return fmt.Errorf("timerfd in the netpoller: %w", errors.ErrUnsupported)
	}
	s := newStopwatch()
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(max(int64(d), 1))}
	var expirations [8]byte
	for more() {
		began := s.ns()
		if err := unix.TimerfdSettime(fd, 0, &spec, nil); err != nil {
			return fmt.Errorf("timerfd_settime: %w", err)
		}
		if _, err := f.Read(expirations[:]); err != nil {
			return fmt.Errorf("timerfd: %w", err)
		}
		record(s.ns() - began - int64(d))
	}
	return nil
}
