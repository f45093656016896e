//go:build linux && !detent_portable

package waker

import (
	"errors"
	"fmt"
	"math"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/detent-go/detent/internal/rt"
)

// Watch notices that the wall clock has been set, or that the system has been
// suspended: a timerfd that the kernel cancels for that, and the goroutine that
// waits for it in the netpoller.
type Watch struct {
	f    *os.File
	raw  syscall.RawConn
	set  func()
	done chan struct{} // closed when the goroutine has ended
}

// NewWatch starts the goroutine, which calls set after each time that the clock has
// been set or the system suspended, but may call it once for several, and more
// often. From its return on none is missed. set must be quick.
func NewWatch(set func()) (*Watch, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_REALTIME, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("timerfd_create: %w", err)
	}
	w := &Watch{f: os.NewFile(uintptr(fd), "timerfd"), set: set, done: make(chan struct{})}
	w.raw, err = w.f.SyscallConn()
	if err == nil {
		err = w.f.SetReadDeadline(time.Time{})
		if err != nil { // as in NewPrecise
			err = fmt.Errorf("timerfd in the netpoller: %w", errors.ErrUnsupported)
		}
	}
	if err == nil {
		err = armWatch(fd)
	}
	if err != nil {
		_ = w.f.Close()
		return nil, err
	}
	go w.wait()
	return w, nil
}

// armWatch sets the timerfd to the end of time, since only a timer that is set is
// canceled.
func armWatch(fd int) error {
	spec := unix.ItimerSpec{Value: timespec(math.MaxInt64)}
	err := unix.TimerfdSettime(fd, unix.TFD_TIMER_ABSTIME|unix.TFD_TIMER_CANCEL_ON_SET, &spec, nil)
	if err != nil && err != unix.ECANCELED { // It has been canceled, and is set.
		return fmt.Errorf("timerfd_settime: %w", err)
	}
	return nil
}

func (w *Watch) wait() {
	rt.Unlabel()
	defer close(w.done)
	var buf [8]byte
	// What comes before the read is found by it; what comes after wakes. A set
	// between the read and the arming has come before set is called. Close does not
	// free the descriptor while read is at work: to arm it later might be to arm
	// somebody else's file.
	read := func(fd uintptr) bool {
		for {
			_, err := unix.Read(int(fd), buf[:])
			switch err {
			case unix.EINTR:
			case unix.EAGAIN:
				return false
			default:
				// Canceled, in all likelihood; or the end of time has come.
				_ = armWatch(int(fd))
				return true
			}
		}
	}
	for w.raw.Read(read) == nil {
		w.set()
	}
}

// Close ends the goroutine; Wait waits for that.
func (w *Watch) Close() { _ = w.f.Close() }

// Wait returns when the goroutine has ended. It must not be called from set.
func (w *Watch) Wait() { <-w.done }
