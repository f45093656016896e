package timer

import (
	"sync"
	"time"
)

// bubbled is a timer or ticker made inside a testing/synctest bubble: one of
// package time, which runs on the bubble's clock. None of the engine is part of
// it, since neither the engine's clock nor its goroutines belong to the bubble.
type bubbled struct {
	e *engine
	c <-chan time.Time // nil for a callback
	f func()           // the callback, or what sends on c

	mu     sync.Mutex
	t      *time.Timer // nil before the first arm
	armed  bool        // t has not fired for the last arm, nor been stopped
	round  int         // number of arms and stops; a firing of an earlier one is stale
	period time.Duration
}

// newBubbled returns one that is started.
func newBubbled(e *engine, c <-chan time.Time, f func(), d, period time.Duration) *bubbled {
	b := &bubbled{e: e, c: c, f: f, period: period}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.armLocked(d)
	return b
}

func (b *bubbled) armLocked(d time.Duration) {
	b.armed = true
	b.round++
	round := b.round
	b.t = time.AfterFunc(d, func() { b.fire(round) })
}

func (b *bubbled) fire(round int) {
	b.mu.Lock()
	if !b.armed || b.round != round || b.e.group.Closed() {
		b.mu.Unlock()
		return
	}
	if b.period > 0 {
		b.armLocked(b.period)
	} else {
		b.armed = false
	}
	if b.c != nil {
		b.f() // It sends if there is room, and the lock keeps stop from missing it.
		b.mu.Unlock()
		return
	}
	b.mu.Unlock()
	b.f()
}

// disarmLocked stops the timer, and reports whether it was pending or its value
// had not been received.
func (b *bubbled) disarmLocked() bool {
	pending := b.armed
	b.armed = false
	b.round++
	if b.t != nil {
		b.t.Stop()
	}
	if b.c != nil {
		select {
		case <-b.c:
			pending = true
		default:
		}
	}
	return pending
}

func (b *bubbled) stop() bool {
	if b.e.group.Closed() {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.disarmLocked()
}

func (b *bubbled) reset(d, period time.Duration, op string) bool {
	if b.e.group.Closed() {
		closedPanic(op)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	pending := b.disarmLocked()
	b.period = period
	b.armLocked(d)
	return pending
}
