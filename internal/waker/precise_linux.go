//go:build linux && !detent_portable

package waker

import (
	"errors"
	"fmt"
	"math"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/detent-go/detent/internal/rt"
)

// Precise is a timerfd watched by the Go netpoller, and the goroutine that
// waits for it.
//
// # Why no expiry is lost
//
// The goroutine never reads the file: the netpoller registers it edge-triggered,
// and a timerfd makes a new edge at every expiry, read or not. That saves a
// system call a wake. It leaves one hole. Before it waits, the runtime forgets
// an edge that has arrived since the last wait, so an expiry in between would go
// unnoticed. The hole is closed by the clock: armed holds the deadline that the
// file was last set to, and the goroutine looks at it after the runtime has
// forgotten. If that deadline has passed, it does not wait. If it has not, its
// edge is still to come, and cannot be forgotten any more.
//
// Arm stores armed before it sets the file. A deadline set after the look is
// one whose edge is still to come, too.
//
// A wall clock that is set back between the edge and the look opens the hole again:
// whoever notices that the clock has been set arms anew.
type Precise struct {
	f     *os.File
	raw   syscall.RawConn
	wake  func()
	now   func() (int64, bool) // reads the clock; constant
	armed atomic.Int64         // time of the last Arm that wake has not followed
	fd    int
	// offset is what has to be added to a reading of the clock to get the kernel's.
	// Of rt.Now from CLOCK_MONOTONIC it is rounded up by less than the time between
	// two readings: a deadline is never armed early. Other clocks have none.
	offset int64
	done   chan struct{} // closed when the goroutine has ended

	// turn is the number of times that Replace has been called. A goroutine
	// that is not of the current turn ends.
	turn atomic.Int64
}

// NewPrecise makes a timerfd for the clock and starts the goroutine that calls wake
// after each expiry. wake may be called without one.
func NewPrecise(c Clock, wake func()) (*Precise, error) {
	now, err := c.Reader()
	if err != nil {
		return nil, err
	}
	fd, err := unix.TimerfdCreate(c.id(), unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("timerfd_create: %w", err)
	}
	f := os.NewFile(uintptr(fd), "timerfd")
	raw, err := f.SyscallConn()
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("timerfd: %w", err)
	}
	// A file that the netpoller does not watch would block its reader's thread:
	// only watched files take deadlines.
	if err := f.SetReadDeadline(time.Time{}); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("timerfd in the netpoller: %w", errors.ErrUnsupported)
	}
	p := &Precise{f: f, raw: raw, wake: wake, now: now, fd: fd, done: make(chan struct{})}
	if c == Monotonic {
		if p.offset, err = offset(); err != nil {
			_ = f.Close()
			return nil, err
		}
	}
	p.armed.Store(never)
	go p.wait(0)
	return p, nil
}

// wait calls wake after every expiry until the file is closed, or another
// goroutine has taken its turn. Should wake end the goroutine (runtime.Goexit in
// a callback), another one takes over.
func (p *Precise) wait(turn int64) {
	rt.Unlabel()
	closed := false
	defer func() {
		switch {
		case p.turn.Load() != turn:
		case closed:
			close(p.done)
		default:
			go p.wait(turn)
		}
	}()
	waited, othersTurn := false, false
	var busy streak
	due := func(uintptr) bool {
		if waited {
			busy.waited()
			return true
		}
		waited = true
		now, _ := p.now()
		if p.armed.Load() > now {
			return false
		}
		othersTurn = busy.again(now)
		return true
	}
	for p.turn.Load() == turn {
		waited, othersTurn = false, false
		if err := p.raw.Read(due); err != nil {
			closed = true
			return
		}
		if othersTurn {
			Yield()
		}
		p.armed.Store(never)
		p.wake()
	}
}

// Arm makes the file expire at the given time of the clock, instead of when it was
// last armed for. It does not block; the holder of the shard lock calls it,
// and does not after Close.
func (p *Precise) Arm(at int64) {
	p.armed.Store(at)
	if p.offset != 0 { // whose sum might overflow
		at = min(at, far) + p.offset
	}
	spec := unix.ItimerSpec{Value: timespec(max(at, 1))}
	// The only errors are those of a bad descriptor or value. The call does not
	// tell the scheduler that it enters the kernel (it does not wait there), as
	// is needed in a pinned goroutine.
	_ = unix.TimerfdSettime(p.fd, unix.TFD_TIMER_ABSTIME, &spec, nil)
}

// Replace has another goroutine wait for the file, because the present one is
// held up in wake, or may be. That one ends when wake returns, or at Close. The holder of the shard lock
// calls it, and not after Close.
func (p *Precise) Replace() {
	go p.wait(p.turn.Add(1))
}

// Close closes the file. The goroutine ends; Wait waits for that.
func (p *Precise) Close() { _ = p.f.Close() }

// Wait returns when the goroutine has ended. It must not be called from wake.
func (p *Precise) Wait() { <-p.done }

// clockGettime is the system call. The Go runtime reads the clock through the vDSO,
// so that a sandbox may refuse the call to a program that runs well. A variable for
// tests.
var clockGettime = unix.ClockGettime

func offset() (int64, error) {
	best := int64(math.MaxInt64)
	for range 8 {
		var ts unix.Timespec
		before, _ := rt.Now()
		if err := clockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
			return 0, fmt.Errorf("clock_gettime: %w", err)
		}
		best = min(best, ts.Nano()-before)
	}
	return best, nil
}
