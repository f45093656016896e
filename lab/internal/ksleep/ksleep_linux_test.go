package ksleep

import (
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

var sysFutex = strconv.Itoa(unix.SYS_FUTEX)

// TestEpoll: it returns when a file is ready, and not before its time otherwise.
func TestEpoll(t *testing.T) {
	epfd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		t.Skip(err)
	}
	defer unix.Close(epfd)
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pipe[0])
	defer unix.Close(pipe[1])
	event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(pipe[0])}
	if err := unix.EpollCtl(epfd, unix.EPOLL_CTL_ADD, pipe[0], &event); err != nil {
		t.Fatal(err)
	}
	for _, ms := range []int{0, 1, 5} {
		start := time.Now()
		if Epoll(epfd, ms) {
			t.Error("a file is ready, and nobody wrote")
		}
		// A signal may have cut it short; a preempting one of the runtime's.
		t.Logf("%d ms took %v", ms, time.Since(start))
	}
	for _, ms := range []int{-1, 60_000} {
		go func() {
			time.Sleep(2 * time.Millisecond)
			_, _ = unix.Write(pipe[1], []byte{0})
		}()
		for !Epoll(epfd, ms) { // until it is not a signal
		}
		var b [8]byte
		if n, err := unix.Read(pipe[0], b[:]); n != 1 || err != nil {
			t.Errorf("read %d, %v", n, err)
		}
	}
}

func TestNanosleep(t *testing.T) {
	for _, d := range []time.Duration{-1, 0, 1, time.Millisecond} {
		start := time.Now()
		Nanosleep(d)
		t.Logf("%v took %v", d, time.Since(start))
	}
}
