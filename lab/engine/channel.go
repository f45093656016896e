package engine

import (
	"sync"
	"time"
)

// TimerOver is a timer with a channel over the node of a core.
//
// # Ground rules
//
// mu protects the fields below it, and every send on and every Stop's receive
// from c. seq tells armings apart: Stop and Reset raise it, so that a call of
// sendTime that the core had begun by then finds that it is of an earlier arming,
// and sends nothing. mu is held while the node is stopped or armed; the core
// calls sendTime while it holds no lock.
type TimerOver struct {
	c    chan time.Time
	node Node // nil in the zero value, which Stop and Reset refuse

	mu    sync.Mutex
	seq   uintptr // of the present arming
	armed bool    // nothing has been sent since
}

// C returns the channel.
func (t *TimerOver) C() <-chan time.Time { return t.c }

func sendTime(arg any, seq uintptr) {
	t := arg.(*TimerOver)
	t.mu.Lock()
	defer t.mu.Unlock()
	if seq != t.seq || !t.armed {
		return
	}
	t.armed = false
	t.c <- time.Now() // c is empty: arming emptied it
}

// disarmLocked ends the present arming. It reports whether its value has not
// been received, and never will be.
func (t *TimerOver) disarmLocked() (stopped bool) {
	t.seq++
	if t.armed {
		t.armed = false
		return true
	}
	select {
	case <-t.c:
		return true
	default:
		return false
	}
}

// Stop disarms the timer, and reports whether nobody had received its value.
func (t *TimerOver) Stop() bool {
	if t.node == nil {
		panic("lab: Stop called on uninitialized Timer")
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	wasArmed := t.armed
	stopped := t.disarmLocked()
	if wasArmed {
		t.node.Stop()
	}
	return stopped
}

// Reset arms the timer for d from now, and reports whether nobody had received
// its value.
func (t *TimerOver) Reset(d time.Duration) bool {
	if t.node == nil {
		panic("lab: Reset called on uninitialized Timer")
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	stopped := t.disarmLocked()
	t.armed = true
	t.node.Rearm(d, 0, t.seq)
	return stopped
}

// TickerOver is a ticker over the node of a core, under the same rules as
// [TimerOver].
type TickerOver struct {
	c    chan time.Time
	node Node

	mu    sync.Mutex
	seq   uintptr
	armed bool // not stopped
}

// C returns the channel.
func (t *TickerOver) C() <-chan time.Time { return t.c }

func sendTick(arg any, seq uintptr) {
	t := arg.(*TickerOver)
	t.mu.Lock()
	defer t.mu.Unlock()
	if seq != t.seq || !t.armed {
		return
	}
	select {
	case t.c <- time.Now():
	default: // dropped, for nobody has received the one before
	}
}

func (t *TickerOver) disarmLocked() {
	t.seq++
	t.armed = false
	select {
	case <-t.c:
	default:
	}
}

// Stop stops the ticker. As in package time, it lets a zero Ticker pass.
func (t *TickerOver) Stop() {
	if t.node == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.disarmLocked()
	t.node.Stop()
}

// Reset stops the ticker, and starts it with period d.
func (t *TickerOver) Reset(d time.Duration) {
	if d <= 0 {
		panic("non-positive interval for Ticker.Reset")
	}
	if t.node == nil {
		panic("lab: Reset called on uninitialized Ticker")
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.disarmLocked()
	t.armed = true
	t.node.Rearm(d, d, t.seq)
}
