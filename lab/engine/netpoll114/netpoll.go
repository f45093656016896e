package netpoll114

import (
	"time"

	"github.com/detent-go/detent/lab/engine"
)

// wakeNetPoller sees to it that somebody looks at the timers no later than when. It
// is called after a timer has been filed, or modified to that deadline.
func (e *Engine) wakeNetPoller(when int64) {
	step("lastpoll")
	if e.lastpoll.Load() != 0 {
		e.wakep()
		return
	}
	// Somebody waits, or is about to. The break of one that is about to ends its
	// wait before it begins.
	step("pollUntil")
	if until := e.pollUntil.Load(); until == 0 || until > when {
		e.netpollBreak()
	}
}

// wait waits in the netpoller until the given time, or for a break.
func (e *Engine) wait(until int64) {
	if !e.sys.acquire() {
		return
	}
	defer e.sys.release()
	e.epolls.Add(1)
	e.sys.wait(milliseconds(until - engine.Now()))
	e.wakeups.Add(1)
}

// netpollBreak ends the wait of whoever is in the netpoller, or is next.
func (e *Engine) netpollBreak() {
	if !e.sys.acquire() {
		return
	}
	defer e.sys.release()
	e.breaks.Add(1)
	e.sys.interrupt()
}

// milliseconds is how long netpoll waits for ns nanoseconds: rounded down, but no
// wait is shorter than a millisecond, and none is longer than 11 days.
func milliseconds(ns int64) int {
	switch {
	case ns <= 0:
		return 0
	case ns < int64(time.Millisecond):
		return 1
	case ns < 1e15:
		return int(ns / int64(time.Millisecond))
	default:
		return 1e9
	}
}
