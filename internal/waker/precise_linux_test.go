//go:build linux && !detent_portable

package waker

import (
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// monotonic reads CLOCK_MONOTONIC itself.
func monotonic(t testing.TB) int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		t.Fatal(err)
	}
	return ts.Nano()
}

// TestNeverEarly arms one deadline and compares with CLOCK_MONOTONIC, not with
// the clock that arming is done by. Each deadline has a file of its own, since
// wake may be called a second time for the deadline before.
func TestNeverEarly(t *testing.T) { eachAlarm(t, testNeverEarly) }

func testNeverEarly(t *testing.T, open func(wake func()) alarm) {
	for k := range 200 {
		woken := make(chan int64, 16)
		p := open(func() { woken <- monotonic(t) })
		d := int64(k*7919%1_500_000) + 1
		before := monotonic(t)
		p.Arm(now(t) + d)
		select {
		case at := <-woken:
			if at < before+d {
				t.Fatalf("armed for %d ns, woken after %d", d, at-before)
			}
		case <-time.After(time.Minute):
			t.Fatalf("the wake after %d ns was lost", d)
		}
		p.Close()
		p.Wait()
	}
}

// TestExpiry asks the kernel what it was told: not a time before the deadline,
// even by less than a wake-up takes.
func TestExpiry(t *testing.T) {
	p, err := NewPrecise(Monotonic, func() {})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Wait()
	defer p.Close()
	for range 2000 {
		at := now(t) + int64(time.Hour)
		p.Arm(at)
		var left unix.ItimerSpec
		if err := unix.TimerfdGettime(p.fd, &left); err != nil {
			t.Fatal(err)
		}
		expiry := left.Value.Nano() + monotonic(t) // by so much too late as the last line took
		offset := monotonic(t) - now(t)            // the same, too small
		if early := at + offset - expiry; early > 0 {
			t.Fatalf("the file expires %d ns before the deadline", early)
		}
	}
}

// A sandbox may refuse the system call, for the runtime does not need it.
func TestClockRefused(t *testing.T) {
	defer func() { clockGettime = unix.ClockGettime }()
	clockGettime = func(int32, *unix.Timespec) error { return unix.EPERM }
	p, err := NewPrecise(Monotonic, func() {})
	if p != nil || !errors.Is(err, unix.EPERM) {
		t.Errorf("waker %v, error %v", p, err)
	}
}
