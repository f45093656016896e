package netpoll114

import (
	"time"

	"github.com/detent-go/detent/lab/engine"
)

// node is one timer.
type node struct {
	e   *Engine
	f   engine.Func // nil for a task
	arg any

	state state

	// Whose these are is said by state.
	timers *timers // the heap that it is in
	when   int64   // the deadline by which the heap is ordered
	next   int64   // the deadline that it was reset to, if it was
	period int64
	seq    uintptr
}

// Start is addtimer: the timer goes into the heap of the caller's P.
func (e *Engine) Start(d, period time.Duration, f engine.Func, arg any, seq uintptr) engine.Node {
	when := engine.Deadline(d)
	n := &node{e: e, f: f, arg: arg, when: when, period: int64(period), seq: seq}
	n.state.must(noStatus, waiting) // nobody knows of it yet
	ts := e.pick()
	if !ts.add(n) {
		closedPanic()
	}
	e.startMonitor()
	e.wakeNetPoller(ts.owner, when) // n.when is the heap's by now
	return n
}

func closedPanic() { panic("lab: netpoll114: timer started after Close") }

// Stop is deltimer: it leaves the timer in its heap.
func (n *node) Stop() bool { return !n.e.closing.Load() && n.stop() }

func (n *node) stop() bool {
	for {
		switch s := n.state.load(); s {
		case waiting, modifiedEarlier, modifiedLater:
			if !n.state.change(s, modifying) {
				continue
			}
			ts := n.timers
			if s == modifiedEarlier {
				ts.adjust.Add(-1)
			}
			// Counted before it can be seen and removed, lest the count be negative.
			ts.deleted.Add(1)
			n.state.must(modifying, deleted)
			return true
		case deleted, removing, removed, noStatus:
			return false
		default: // running, moving, modifying
			pause()
		}
	}
}

// Reset is Rearm for a timer without a period.
func (n *node) Reset(d time.Duration) bool { return n.Rearm(d, 0, 0) }

// Rearm is modtimer: a timer that is in a heap stays where it is.
func (n *node) Rearm(d, period time.Duration, seq uintptr) bool {
	if n.e.closing.Load() {
		closedPanic()
	}
	when := engine.Deadline(d)
	armed, sooner, ok := n.rearm(when, int64(period), seq, n.e.pick)
	if !ok {
		closedPanic()
	}
	if sooner != nil {
		n.e.wakeNetPoller(sooner.owner, when)
	}
	return armed
}

// rearm sets the node's deadline, period and number. It reports whether the node
// was armed, and returns the heap that it is in if it may be due before anything that
// a poller knows of. If the node is in no heap it goes into that of own; if that is
// closed, ok is false.
func (n *node) rearm(when, period int64, seq uintptr, own func() *timers) (armed bool, sooner *timers, ok bool) {
	var was status
	for {
		was = n.state.load()
		switch was {
		case running, removing, moving, modifying:
			pause()
			continue
		}
		if n.state.change(was, modifying) {
			break
		}
	}
	n.period, n.seq = period, seq
	if was == noStatus || was == removed {
		n.when = when
		ts := own()
		if !ts.add(n) {
			n.state.must(modifying, removed)
			return false, nil, false
		}
		n.state.must(modifying, waiting)
		return false, ts, true
	}
	ts := n.timers
	n.next = when
	to := modifiedLater
	if when < n.when {
		to = modifiedEarlier
	}
	// Counted before the change can be seen: who looks after somebody has been
	// told must not miss it, and the count must not be negative.
	switch {
	case was == modifiedEarlier && to != modifiedEarlier:
		ts.adjust.Add(-1)
	case was != modifiedEarlier && to == modifiedEarlier:
		ts.adjust.Add(1)
	}
	if was == deleted {
		ts.deleted.Add(-1)
	}
	n.state.must(modifying, to)
	if to == modifiedEarlier {
		sooner = ts
	}
	return was != deleted, sooner, true
}
