package bench

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// threadSleeps fills late with the latenesses of sleeps of d in nanosleep on
// a locked thread whose timer slack is the least there is. The thread stays
// locked: it has to end with the goroutine, for no other to get that slack.
func threadSleeps(d time.Duration, late []int64) error {
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("prctl(PR_SET_TIMERSLACK): %w", err)
	}
	for i := range late {
		begin := now()
		left := unix.NsecToTimespec(int64(d))
		for {
			err := unix.Nanosleep(&left, &left)
			if err == nil {
				break
			}
			if !errors.Is(err, unix.EINTR) {
				return fmt.Errorf("nanosleep: %w", err)
			}
		}
		late[i] = now() - begin - int64(d)
	}
	return nil
}
