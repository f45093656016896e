//go:build linux && !detent_portable

package waker

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/detent-go/detent/internal/rt"
)

// Witness is a thread that waits for the same timerfds as the netpoller, and
// notes when it was woken for each. The netpoller does not tell when a file became
// ready; and it may look long after, because the Go scheduler has come to it no
// sooner, or because the kernel has let no thread run. The witness needs nothing of
// the Go scheduler, so it tells these two apart: how late it wakes is the
// kernel's doing.
//
// # The thread
//
// To the Go scheduler, the thread is in one long system call: it gives up its P
// before the first wait, and takes one after the last. In between it waits, reads
// the clock and stores what it has seen, in one function whose frame is all the
// stack it needs: nothing there may grow the stack, allocate, write a pointer to
// the heap, or be watched by the race detector.
//
// After a wait that was shorter than restFor it rests for as long, so that its cost
// is bounded: some 10 us of CPU time for each wait. What expires while it rests, it
// does not tell of.
type Witness struct {
	epoll, stop int   // file descriptors; constant
	zero        int64 // what nanotime reads at the time 0 of rt.Now; constant
	done        chan struct{}

	// since is from when on the thread has been waiting; never while it does not.
	since  atomic.Int64
	seen   []sight // constant; one for each file
	events [16]unix.EpollEvent
	rest   unix.Timespec // constant; restFor
}

// sight is when the thread was woken because a file had expired, and from when on
// it had been waiting then.
type sight struct {
	at, since atomic.Int64
	_         [48]byte
}

// In nanoseconds. What has expired while the thread rested ends its wait at once:
// then it waits again, lest it come just after an expiry each time.
const (
	restFor = 1_000_000
	atOnce  = 10_000
)

// stopEvent is what names the eventfd among the files, whose names are their
// numbers.
const stopEvent = -1

// NewWitness starts the thread for as many files, which do not exist yet.
func NewWitness(files int) (*Witness, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll_create1: %w", err)
	}
	stop, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		_ = unix.Close(epoll)
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	w := &Witness{
		epoll: epoll, stop: stop, zero: zero(), done: make(chan struct{}),
		seen: make([]sight, files), rest: unix.NsecToTimespec(restFor),
	}
	w.since.Store(never)
	for k := range w.seen {
		w.seen[k].at.Store(-1)
	}
	if err := w.add(stop, stopEvent); err != nil {
		w.closeFiles()
		return nil, err
	}
	go func() {
		rt.Unlabel()
		w.run()
		w.closeFiles()
		close(w.done)
	}()
	return w, nil
}

// zero returns what nanotime reads at the time 0 of rt.Now.
func zero() int64 {
	best, width := int64(0), int64(never)
	for range 8 {
		before := nanotime()
		now, _ := rt.Now()
		if d := nanotime() - before; d < width {
			best, width = before+d/2-now, d
		}
	}
	return best
}

func (w *Witness) add(fd int, name int32) error {
	e := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET, Fd: name}
	if err := unix.EpollCtl(w.epoll, unix.EPOLL_CTL_ADD, fd, &e); err != nil {
		return fmt.Errorf("epoll_ctl: %w", err)
	}
	return nil
}

func (w *Witness) closeFiles() {
	_ = unix.Close(w.epoll)
	_ = unix.Close(w.stop)
}

// Watch makes the timerfd of p file k. It ends with p.
func (w *Witness) Watch(k int, p *Precise) error { return w.add(p.fd, int32(k)) }

// Woken returns when the thread was woken because file k, armed for the time
// armed, had expired. The current time is now: it is returned if the thread has
// not been woken yet, although it waits. It returns false where the thread cannot
// tell: it did not wait when the time had come.
func (w *Witness) Woken(k int, armed, now int64) (at int64, ok bool) {
	s := &w.seen[k]
	at, since := s.at.Load(), s.since.Load()
	if at >= armed {
		// Unless the thread has been woken again, in which case it waited not before
		// the first time.
		return min(at, now), since <= armed && s.at.Load() == at
	}
	return now, w.since.Load() <= armed
}

// Close has the thread end. What it watches is closed before or after.
func (w *Witness) Close() {
	_, _ = unix.Write(w.stop, []byte{7: 1})
}

// Wait returns when the thread has ended and its files are closed.
func (w *Witness) Wait() { <-w.done }

// run is the thread, until Close.
//
//go:nosplit
//go:norace
func (w *Witness) run() {
	entersyscallblock()
	for open, rested := true, false; open; {
		since := nanotime() - w.zero
		store(&w.since, since)
		n, _, errno := epollWait(w.epoll, &w.events)
		for errno == unix.EINTR {
			// The process has been stopped, say. What has expired meanwhile is told
			// of at once, and it has been waited for all the time.
			n, _, errno = epollWait(w.epoll, &w.events)
		}
		at := nanotime() - w.zero
		store(&w.since, never)
		if errno != 0 {
			break // It can only be the descriptor that is wrong.
		}
		for k := uintptr(0); k < n; k++ {
			name := w.events[k].Fd
			if name == stopEvent {
				open = false
				break
			}
			s := &w.seen[name]
			store(&s.since, since)
			store(&s.at, at)
		}
		rested = at-since > atOnce || !rested
		if open && rested && at-since < restFor {
			_, _, _ = syscall.RawSyscall6(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&w.rest)), 0, 0, 0, 0, 0)
		}
	}
	exitsyscall()
	runtime.KeepAlive(w)
}

// epollWait waits for events without a limit.
//
//go:nosplit
//go:norace
func epollWait(epoll int, events *[16]unix.EpollEvent) (n, _ uintptr, errno syscall.Errno) {
	return syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(epoll), uintptr(unsafe.Pointer(events)),
		uintptr(len(events)), ^uintptr(0), 0, 0)
}

// entersyscallblock is entersyscall where it is known that it does take long: the P
// is given away at once.
//
//go:linkname entersyscallblock runtime.entersyscallblock
//go:nosplit
func entersyscallblock()
