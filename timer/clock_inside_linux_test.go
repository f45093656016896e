//go:build linux && !detent_portable

package timer

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestClockReads: a service reads the clock that it was asked for. (In the namespace
// of TestClockNamespace no two of them are near each other.)
func TestClockReads(t *testing.T) {
	for c, id := range map[Clock]int32{
		Monotonic: unix.CLOCK_MONOTONIC, Boottime: unix.CLOCK_BOOTTIME, Realtime: unix.CLOCK_REALTIME,
	} {
		kernels := func() int64 {
			var ts unix.Timespec
			if err := unix.ClockGettime(id, &ts); err != nil {
				t.Fatal(err)
			}
			return ts.Nano()
		}
		s, err := New(&Options{Clock: c})
		if err != nil {
			t.Fatal(err)
		}
		before := kernels()
		got, bubbled := s.e.group.Now()
		after := kernels()
		if c == Monotonic { // It begins at 0 with the process.
			before = 0
		}
		if bubbled || got < before || got > after {
			t.Errorf("%v: %d, not from %d to %d; in a bubble %v", c, got, before, after, bubbled)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
