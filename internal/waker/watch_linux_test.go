//go:build linux && !detent_portable

package waker

import (
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestPreciseClocks: a timerfd for a clock wakes when that clock says so, by its own
// reading. Each deadline has a file of its own, since wake may be called a second
// time for the deadline before.
func TestPreciseClocks(t *testing.T) {
	for c, read := range readers(t) {
		kernels := func() int64 {
			var ts unix.Timespec
			if err := unix.ClockGettime(int32(c.id()), &ts); err != nil {
				t.Error(err)
			}
			return ts.Nano()
		}
		for k := range int64(50) {
			woken := make(chan int64, 16)
			p, err := NewPrecise(c, func() { woken <- kernels() })
			if err != nil {
				t.Fatal(err)
			}
			d := k * 7919 % 1_500_000
			before := kernels()
			now, _ := read()
			p.Arm(now + d)
			select {
			case at := <-woken:
				if at < before+d {
					t.Errorf("clock %d: woken after %d ns, armed for %d", c, at-before, d)
				}
			case <-time.After(time.Minute):
				t.Fatalf("clock %d: the wake for %d ns was lost", c, d)
			}
			p.Arm(never)
			p.Close()
			p.Wait()
		}
	}
}

// TestPreciseClocksAtWork: an expiry that comes while wake is still at work on the one
// before is not lost, whatever the clock.
func TestPreciseClocksAtWork(t *testing.T) {
	for c, read := range readers(t) {
		for range 20 {
			woken := make(chan int64, 16)
			var first atomic.Bool
			var p *Precise
			armed := make(chan struct{})
			p, err := NewPrecise(c, func() {
				<-armed
				now, _ := read()
				if first.CompareAndSwap(false, true) {
					p.Arm(now + 50_000)
					for at := now; at < now+200_000; at, _ = read() {
					}
				}
				woken <- now
			})
			if err != nil {
				t.Fatal(err)
			}
			now, _ := read()
			p.Arm(now)
			close(armed)
			for range 2 {
				select {
				case <-woken:
				case <-time.After(time.Minute):
					t.Fatalf("clock %d: the second wake was lost", c)
				}
			}
			p.Close()
			p.Wait()
		}
	}
}

// TestWatchEnds: a watch leaves neither a goroutine nor a file. That it sees the
// clock being set is shown by package timer, which sets it.
func TestWatchEnds(t *testing.T) {
	if w, err := NewWatch(func() {}); err != nil { // the netpoller's own files
		t.Fatal(err)
	} else {
		w.Close()
		w.Wait()
	}
	files := func() int {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip(err)
		}
		return len(list)
	}
	open, before := files(), runtime.NumGoroutine()
	for range 50 {
		w, err := NewWatch(func() { t.Log("the clock has been set") })
		if err != nil {
			t.Fatal(err)
		}
		err = w.raw.Control(func(fd uintptr) {
			if err := armWatch(int(fd)); err != nil { // as after each set
				t.Error(err)
			}
		})
		if err != nil {
			t.Error(err)
		}
		w.Close()
		w.Wait()
	}
	if n := files(); n > open {
		t.Errorf("%d files, before %d", n, open)
	}
	// Wait returns when there is nothing left to do for a goroutine but to end.
	settle(t, "the goroutines to end", func() bool { return runtime.NumGoroutine() <= before })
}
