package netpoll114

import (
	"fmt"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/detent-go/detent/lab/internal/ksleep"
)

// poller is an epoll instance that watches the reading end of a pipe.
type poller struct {
	// refs counts those who use the files, and the engine itself until Close. The
	// last one closes them: a number must not be written to that has become
	// somebody else's file.
	refs atomic.Int32

	epfd, rd, wr int
}

func (p *poller) open() error {
	epfd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return fmt.Errorf("epoll_create: %w", err)
	}
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		_ = unix.Close(epfd)
		return fmt.Errorf("pipe: %w", err)
	}
	p.epfd, p.rd, p.wr = epfd, pipe[0], pipe[1]
	p.refs.Store(1)
	event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(p.rd)}
	if err := unix.EpollCtl(epfd, unix.EPOLL_CTL_ADD, p.rd, &event); err != nil {
		p.release()
		return fmt.Errorf("epoll_ctl: %w", err)
	}
	return nil
}

// acquire reports whether the files may be used, until release.
func (p *poller) acquire() bool {
	for {
		n := p.refs.Load()
		if n == 0 {
			return false
		}
		if p.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (p *poller) release() {
	if p.refs.Add(-1) == 0 {
		_ = unix.Close(p.epfd)
		_ = unix.Close(p.rd)
		_ = unix.Close(p.wr)
	}
}

// wait waits for the given number of milliseconds, or for an interrupt.
func (p *poller) wait(ms int) (interrupts int) {
	if !ksleep.Epoll(p.epfd, ms) {
		return 0
	}
	// As many as Go 1.14 reads at a time. What is left in the pipe ends the next wait
	// as well.
	var b [16]byte
	n, _ := unix.Read(p.rd, b[:])
	return max(n, 0)
}

// interrupt ends a wait. If the pipe is full, that has been seen to.
func (p *poller) interrupt() bool {
	for {
		n, err := unix.Write(p.wr, []byte{0})
		if err != unix.EINTR {
			return n == 1
		}
	}
}
