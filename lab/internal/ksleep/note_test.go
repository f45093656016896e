package ksleep

import (
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func note(t testing.TB) *Note {
	if err := Available(); err != nil {
		t.Skip(err)
	}
	return &Note{Calls: new(Calls)}
}

// TestTimeout: a sleep that nobody ends takes as long as it was to, and says so.
func TestTimeout(t *testing.T) {
	n := note(t)
	for _, d := range []time.Duration{0, 1, 50 * time.Microsecond, 3 * time.Millisecond} {
		start := time.Now()
		if n.Sleep(d) {
			t.Errorf("Sleep(%v) = true, and nobody called Wakeup", d)
		}
		if passed := time.Since(start); passed < d {
			t.Errorf("Sleep(%v) returned after %v", d, passed)
		}
	}
	if n.Calls.Waits.Load() == 0 || n.Calls.Wakes.Load() != 0 {
		t.Errorf("%d waits, %d wakes", n.Calls.Waits.Load(), n.Calls.Wakes.Load())
	}
}

// TestWakeup: a sleep without end is ended by Wakeup, before or after it began,
// and sees what was done before.
func TestWakeup(t *testing.T) {
	n := note(t)
	shared := 0
	for i := range 2000 {
		n.Clear()
		var wg sync.WaitGroup
		wg.Go(func() {
			if i%3 == 0 {
				time.Sleep(10 * time.Microsecond)
			}
			shared = i
			n.Wakeup()
		})
		d := time.Duration(-1)
		if i%2 == 0 {
			d = time.Hour
		}
		if !n.Sleep(d) {
			t.Fatal("Sleep without end = false")
		}
		if shared != i {
			t.Fatalf("read %d after Sleep, want %d", shared, i)
		}
		wg.Wait()
	}
	if got := n.Calls.Wakes.Load(); got != 2000 {
		t.Errorf("%d wakes counted, want 2000", got)
	}
}

// TestWakeupTwice: the second is a fault of the caller's.
func TestWakeupTwice(t *testing.T) {
	n := note(t)
	n.Wakeup()
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	n.Wakeup()
}

// TestManySleepers: threads asleep in the kernel take no P away from those who
// work, survive collections and grown stacks, and all wake.
func TestManySleepers(t *testing.T) {
	note(t)
	const sleepers = 50
	var notes [sleepers]*Note
	var woken atomic.Int64
	var wg sync.WaitGroup
	for i := range notes {
		notes[i] = note(t)
		wg.Go(func() { deep(100, func() { notes[i].Sleep(time.Minute) }); woken.Add(1) })
	}
	for range 20 {
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	if n := woken.Load(); n != 0 {
		t.Errorf("%d woke before they were woken", n)
	}
	for _, n := range notes {
		n.Wakeup()
	}
	wg.Wait()
}

// TestSleepsInFutex: the sleeping thread is in futex(2), nowhere else.
func TestSleepsInFutex(t *testing.T) {
	n := note(t)
	tid := make(chan string, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		link, _ := os.Readlink("/proc/thread-self")
		tid <- link
		n.Sleep(time.Minute)
	}()
	link := <-tid
	call := ""
	for range 1000 {
		b, err := os.ReadFile("/proc/" + link + "/syscall")
		if err != nil {
			n.Wakeup()
			t.Skip(err)
		}
		if call, _, _ = strings.Cut(string(b), " "); call == sysFutex {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if call != sysFutex {
		t.Errorf("the thread is in system call %q, want %s", call, sysFutex)
	}
	n.Wakeup()
	<-done
}

// deep calls f on a deep stack.
//
//go:noinline
func deep(n int, f func()) int {
	var pad [64]byte
	if n == 0 {
		f()
		return int(pad[0])
	}
	return deep(n-1, f) + int(pad[n%64])
}
