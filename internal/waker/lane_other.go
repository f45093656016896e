//go:build !linux || detent_portable

package waker

import (
	"errors"
	"fmt"
	"time"

	"github.com/detent-go/detent/internal/rt"
)

// LaneTells says that [Lane.AwakeAt] is when the kernel woke the thread.
const LaneTells = false

// blocker is how the thread of a lane waits: for a timer of package time.
type blocker struct {
	t     *time.Timer
	pokes chan struct{} // holds one if poked
}

func (l *Lane) open() error {
	l.pokes = make(chan struct{}, 1)
	return nil
}

// Kept returns 0.
func (l *Lane) Kept() int64 { return 0 }

// look returns what block is to be told.
func (b *blocker) look() uint32 { return 0 }

// poke ends block; or, if that has not begun, has the next one return at once.
func (b *blocker) poke() {
	select {
	case b.pokes <- struct{}{}:
	default:
	}
}

// block waits until the given time of rt.Now, or until poked. It may return
// before.
func (l *Lane) block(_ uint32, to int64) {
	now, _ := rt.Now()
	d := time.Duration(max(to-now, 0))
	if l.t == nil {
		l.t = time.NewTimer(d)
	} else {
		l.t.Reset(d)
	}
	select {
	case <-l.t.C:
	case <-l.pokes:
	}
	l.awakeAt, _ = rt.Now()
}

// takeTurns lets others have the P.
func (l *Lane) takeTurns() { Yield() }

// mainThread is not known.
func mainThread() bool { return false }

// apply refuses what is not to be had here.
func (o *LaneOptions) apply() error {
	switch {
	case o.Priority != 0:
		return fmt.Errorf("SCHED_FIFO priority: %w", errors.ErrUnsupported)
	case o.CPUs != nil:
		return fmt.Errorf("CPU affinity: %w", errors.ErrUnsupported)
	case o.LockMemory:
		return fmt.Errorf("mlockall: %w", errors.ErrUnsupported)
	}
	return nil
}
