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
	t      *time.Timer
	armed  bool // t has not fired for the last arm, nor been stopped
	round  int  // number of arms and stops; a firing of an earlier one is stale
	period time.Duration
}

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
	b.t.Stop()
	if b.c != nil {
		select {
		case <-b.c:
			pending = true
		default:
		}
	}
	return pending
}

// naps are the Sleeps of a service in synctest bubbles, for Close to end.
type naps struct {
	mu   sync.Mutex
	wake map[chan struct{}]struct{}
}

// sleep is Sleep in a bubble.
func (n *naps) sleep(d time.Duration) {
	wake := make(chan struct{}, 1)
	n.mu.Lock()
	if n.wake == nil {
		n.wake = make(map[chan struct{}]struct{})
	}
	n.wake[wake] = struct{}{}
	n.mu.Unlock()
	t := time.NewTimer(d)
	select {
	case <-t.C:
	case <-wake:
	}
	t.Stop()
	n.mu.Lock()
	delete(n.wake, wake)
	n.mu.Unlock()
}

// end wakes all that sleep. The caller is in their bubble: the channels may
// not be used from outside.
func (n *naps) end() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for wake := range n.wake {
		wake <- struct{}{}
	}
	clear(n.wake)
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
