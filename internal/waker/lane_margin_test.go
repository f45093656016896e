package waker

import "testing"

// TestLaneMarginUnslept: deadlines so near that the thread spins without having slept
// say nothing about how late it wakes up.
func TestLaneMarginUnslept(t *testing.T) {
	const rounds = 1000
	done := make(chan struct{})
	n := 0
	ready := make(chan *Lane, 1)
	var l *Lane
	made := mustLane(t, LaneOptions{Spin: true}, func() {
		if l == nil {
			l = <-ready
		}
		if n++; n > rounds {
			close(done)
			return
		}
		l.Arm(now(t) + SpinLeast/2)
	})
	ready <- made
	made.Arm(now(t))
	<-done
	if m := made.spinner.Margin(); m != SpinLeast {
		t.Errorf("the margin is %d ns after %d deadlines, none of which the thread has slept for, want %d", m, rounds, SpinLeast)
	}
}
