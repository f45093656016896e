package waker

import (
	"errors"
	"io/fs"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// mustLane makes a lane that is closed at the end of the test.
func mustLane(t testing.TB, o LaneOptions, wake func()) *Lane {
	t.Helper()
	l, err := NewLane(o, wake)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close(); l.Wait() })
	return l
}

// TestLaneGoexit ends the goroutine in wake: another one goes on.
func TestLaneGoexit(t *testing.T) {
	woken := make(chan struct{}, 1)
	l := mustLane(t, LaneOptions{}, func() {
		woken <- struct{}{}
		runtime.Goexit()
	})
	for n := range 100 {
		l.Arm(now(t) + 10_000)
		select {
		case <-woken:
		case <-time.After(time.Minute):
			t.Fatalf("no wake after %d that ended their goroutine", n)
		}
	}
	if err := l.Err(); err != nil {
		t.Error(err)
	}
}

// TestLaneCloseWaiting closes lanes that wait for nothing, for long, and for what
// comes at the same time: the goroutine ends, and wakes nobody afterwards.
func TestLaneCloseWaiting(t *testing.T) {
	goroutines := runtime.NumGoroutine()
	for k := range 300 {
		var closed atomic.Bool
		l, err := NewLane(LaneOptions{Spin: k%2 == 0}, func() {
			if closed.Load() {
				t.Error("woken after Wait")
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		switch k % 3 {
		case 1:
			l.Arm(now(t) + int64(time.Hour))
		case 2:
			l.Arm(now(t) + int64(k)*100)
		}
		if k%5 == 0 {
			time.Sleep(time.Duration(k) * time.Microsecond)
		}
		l.Close()
		l.Wait()
		closed.Store(true)
	}
	for limit := time.Now().Add(time.Minute); runtime.NumGoroutine() > goroutines; runtime.Gosched() {
		if time.Now().After(limit) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), goroutines)
		}
	}
}

// TestLaneCloseInWake closes the lane in wake, and from beside it: Wait does not
// wait, once it has been told.
func TestLaneCloseInWake(t *testing.T) {
	var l *Lane
	ended := make(chan struct{})
	opened := make(chan struct{})
	l, err := NewLane(LaneOptions{}, func() {
		<-opened
		l.Replace()
		l.Close()
		l.Wait()
		close(ended)
	})
	if err != nil {
		t.Fatal(err)
	}
	close(opened)
	l.Arm(now(t))
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("Close in wake does not return")
	}
	<-l.done
}

// TestLaneIdle: a lane that waits for an hour, or for ever, is not woken. And what
// is armed for later than it waits for does not wake it.
func TestLaneIdle(t *testing.T) {
	var wakes atomic.Int64
	l := mustLane(t, LaneOptions{}, func() { wakes.Add(1) })
	time.Sleep(10 * time.Millisecond)
	at := now(t) + int64(time.Hour)
	l.Arm(at)
	for d := range int64(100) {
		l.Arm(at + d)
	}
	time.Sleep(10 * time.Millisecond)
	if n := wakes.Load(); n != 0 {
		t.Errorf("%d wakes", n)
	}
}

// TestLaneAwakeAt: the time at which the thread was awake lies between the deadline
// and the call of wake, unless the deadline had passed before the thread could wait
// for it.
func TestLaneAwakeAt(t *testing.T) {
	type wake struct{ awake, called int64 }
	wakes := make(chan wake, 1)
	var l *Lane
	var mu sync.Mutex // l is set before wake reads it
	mu.Lock()
	l = mustLane(t, LaneOptions{}, func() {
		mu.Lock()
		defer mu.Unlock()
		wakes <- wake{l.AwakeAt(), now(t)}
	})
	mu.Unlock()
	waited := 0
	for limit := time.Now().Add(time.Minute); waited < 20; {
		at := now(t) + 1_000_000
		l.Arm(at)
		w := <-wakes
		if w.awake > w.called || w.called < at {
			t.Fatalf("deadline %d, awake at %d, called at %d", at, w.awake, w.called)
		}
		if w.awake >= at {
			waited++
		}
		if time.Now().After(limit) {
			t.Fatalf("the thread was seen to wake up for a deadline %d times only", waited)
		}
	}
}

func TestLaneRefuses(t *testing.T) {
	for name, o := range map[string]LaneOptions{
		"CPU 5000":  {CPUs: []int{5000}},
		"CPU 1023":  {CPUs: []int{1023}},
		"CPU -1":    {CPUs: []int{-1}},
		"0 and 999": {CPUs: []int{0, 999}},
	} {
		l, err := NewLane(o, func() {})
		if l != nil || !errors.Is(err, fs.ErrInvalid) && !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s: NewLane = %v, %v", name, l, err)
		}
		if err := TryLane(o); err == nil {
			t.Errorf("%s: TryLane gives no error", name)
		}
	}
	if err := TryLane(LaneOptions{Spin: true}); err != nil {
		t.Error(err)
	}
}
