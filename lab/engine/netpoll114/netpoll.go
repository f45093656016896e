package netpoll114

import (
	"time"

	"github.com/detent-go/detent/lab/engine"
)

// wakeNetPoller sees to it that somebody looks at p's timers no later than when. It
// is called after one of them has been filed, or modified to that deadline.
func (e *Engine) wakeNetPoller(p *proc, when int64) {
	step("lastpoll")
	if e.lastpoll.Load() != 0 {
		// In Go 1.14 there is nothing to be done: the caller has a P, looks at the
		// timers before it gives it up, and then goes to the netpoller. Here the caller
		// has none, and if nobody else is about to look at p, somebody has to go.
		step("p")
		if p.is() != inUse {
			e.wakep()
		}
		return
	}
	// Somebody waits, or is about to. The break of one that is about to ends its
	// wait before it begins. Go 1.14 does not keep in mind that it has broken a wait
	// already, as Go 1.15 does: until the thread is awake, each start of a timer that
	// is early enough writes another byte.
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
	ms := milliseconds(until - engine.Now())
	if ms > 0 && e.unread.Load() == 0 {
		e.epollSleeps.Add(1)
	}
	e.unread.Add(-int64(e.sys.wait(ms)))
	e.wakeups.Add(1)
}

// netpollBreak ends the wait of whoever is in the netpoller, or is next.
func (e *Engine) netpollBreak() {
	if !e.sys.acquire() {
		return
	}
	defer e.sys.release()
	e.breaks.Add(1)
	e.unread.Add(1)
	if !e.sys.interrupt() {
		e.unread.Add(-1)
	}
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
