//go:build linux && !detent_portable

package waker

import (
	"math"
	"testing"
	"time"
)

func TestTimespec(t *testing.T) {
	const room = math.MaxInt32 * int64(time.Second)
	for _, ns := range []int64{1, int64(time.Hour), room, room + 1, 1 << 32 * int64(time.Second), math.MaxInt64 - 1, math.MaxInt64} {
		ts := timespec(ns)
		if got := ts.Nano(); got > ns || got < min(ns, room) {
			t.Errorf("timespec(%d) is %d ns", ns, got)
		}
	}
}

// TestWatchIdle: a watch has nothing to tell, again and again, while nobody sets the
// clock. Once or so it may.
func TestWatchIdle(t *testing.T) {
	told := make(chan struct{}, 1000)
	w, err := NewWatch(func() {
		select {
		case told <- struct{}{}:
		default:
		}
	})
	if err != nil {
		t.Skip(err)
	}
	time.Sleep(50 * time.Millisecond)
	w.Close()
	w.Wait()
	if n := len(told); n == cap(told) {
		t.Errorf("told %d times or more that the clock has been set", n)
	}
}
