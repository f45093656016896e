package netpoll114

import "github.com/detent-go/detent/lab/engine"

// add puts in a node that is in no heap, and whose state keeps everybody else away
// from it: Modifying, or Waiting while nobody knows of it. It reports false if the
// engine is closed.
func (ts *timers) add(n *node) bool {
	ts.lock()
	defer ts.unlock()
	if ts.closed {
		return false
	}
	if ts.cluttered() {
		ts.clearLocked()
	} else {
		ts.cleanLocked()
	}
	ts.insertLocked(n)
	return true
}

// cluttered reports whether so many nodes are deleted that the heap should be
// cleared up.
func (ts *timers) cluttered() bool { return ts.deleted.Load() > ts.count.Load()/4 }

// cleanLocked is cleantimers: it sees to the first node of the heap for as long as
// that is not what it seems to be.
func (ts *timers) cleanLocked() {
	for len(ts.heap) > 0 {
		n := ts.heap[0]
		switch s := n.state.load(); s {
		case deleted:
			ts.dropLocked(0)
		case modifiedEarlier, modifiedLater:
			ts.moveLocked(0, s)
		default:
			return
		}
	}
}

// dropLocked removes the node at i, if it is deleted still.
func (ts *timers) dropLocked(i int) (least int, ok bool) {
	n := ts.heap[i]
	if !n.state.change(deleted, removing) {
		return i, false
	}
	least = ts.removeLocked(i)
	ts.deleted.Add(-1)
	n.state.must(removing, removed)
	return least, true
}

// moveLocked files the node at i anew, if it is in state s still, a modified one.
// nearer says that it has moved towards the root, and that the node at i now was
// nearer to it before.
func (ts *timers) moveLocked(i int, s status) (nearer, ok bool) {
	n := ts.heap[i]
	if !n.state.change(s, moving) {
		return false, false
	}
	n.when = n.next
	if nearer = ts.up(i) < i; !nearer {
		ts.down(i)
	}
	ts.changedLocked()
	if s == modifiedEarlier {
		ts.adjust.Add(-1)
	}
	n.state.must(moving, waiting)
	return nearer, true
}

// adjustLocked is adjusttimers: if there are nodes that were modified to earlier,
// it goes through the heap until it has moved them all, and cleans up on its way.
func (ts *timers) adjustLocked() {
	if ts.adjust.Load() == 0 {
		return
	}
	for i := 0; i < len(ts.heap); {
		n := ts.heap[i]
		switch s := n.state.load(); s {
		case deleted:
			if least, ok := ts.dropLocked(i); ok {
				i = least // what is here now has not been looked at
			}
		case modifiedEarlier, modifiedLater:
			if nearer, ok := ts.moveLocked(i, s); ok && nearer {
				i++
			}
			if ts.adjust.Load() == 0 {
				return
			}
		case modifying:
			pause()
		default: // waiting
			i++
		}
	}
}

// clearLocked is clearDeletedTimers: it removes all deleted nodes, and moves the
// modified ones, as it pushes the heap together from the front.
func (ts *timers) clearLocked() {
	to := 0
	changed := false
	old := ts.heap
	for _, n := range old {
		// What has been kept so far, old[:to], is a heap.
		for kept, done := false, false; !done; {
			switch s := n.state.load(); s {
			case waiting:
				kept, done = true, true
			case modifiedEarlier, modifiedLater:
				if !n.state.change(s, moving) {
					continue
				}
				n.when = n.next
				if s == modifiedEarlier {
					ts.adjust.Add(-1)
				}
				n.state.must(moving, waiting)
				kept, done, changed = true, true, true
			case deleted:
				if !n.state.change(s, removing) {
					continue
				}
				n.timers = nil
				ts.deleted.Add(-1)
				n.state.must(removing, removed)
				done, changed = true, true
			default: // modifying
				pause()
				continue
			}
			if kept {
				old[to] = n
				if changed {
					ts.heap = old[:to+1]
					ts.up(to)
				}
				to++
			}
		}
	}
	clear(old[to:])
	ts.heap = old[:to]
	ts.changedLocked()
}

// check is checkTimers: it fires what is due at now, which is read if it is 0.
// It returns now, and when the next node is due, or 0 if there is none. own says
// that the heap is that of the caller's own P: nobody else clears it up. Tasks go to
// spawn.
func (ts *timers) check(now int64, own bool, spawn func(task)) (rnow, next int64, ran bool) {
	clutter := own && ts.cluttered()
	if ts.adjust.Load() == 0 {
		next = ts.first.Load()
		if next == 0 {
			return now, 0, false
		}
		if now == 0 {
			now = engine.Now()
		}
		if now < next && !clutter {
			return now, next, false
		}
	} else if now == 0 {
		now = engine.Now()
	}
	ts.lock()
	defer ts.unlock()
	ts.adjustLocked()
	for {
		next = ts.fireLocked(now, spawn)
		if next != 0 {
			break
		}
		ran = true
	}
	if own && ts.cluttered() {
		ts.clearLocked()
	}
	return now, max(next, 0), ran
}

// until returns when the next node is due, 0 if there is none. Where some were
// modified to earlier the runtime looks at each without moving it; but then what it
// reads may be written at the same time.
func (ts *timers) until() int64 {
	if ts.adjust.Load() > 0 {
		ts.lock()
		ts.adjustLocked()
		ts.unlock()
	}
	return ts.first.Load()
}

// fireLocked is runtimer: it fires the first node if that is due at now, and
// returns 0; or else when it is due, or -1 if there is none. It gives up the lock
// during the call.
func (ts *timers) fireLocked(now int64, spawn func(task)) int64 {
	for len(ts.heap) > 0 && !ts.closed {
		n := ts.heap[0]
		switch s := n.state.load(); s {
		case waiting:
			if n.when > now {
				return n.when
			}
			if n.state.change(s, running) {
				ts.runLocked(n, now, spawn)
				return 0
			}
		case deleted:
			ts.dropLocked(0)
		case modifiedEarlier, modifiedLater:
			ts.moveLocked(0, s)
		default: // modifying
			pause()
		}
	}
	return -1
}

// runLocked fires the heap's first node, which is Running. It gives up the lock
// during the call; by then the node may do anything again.
func (ts *timers) runLocked(n *node, now int64, spawn func(task)) {
	f, arg, seq := n.f, n.arg, n.seq
	if n.period > 0 {
		n.when = engine.NextPeriod(n.when, n.period, now)
		ts.down(0)
		ts.changedLocked()
		n.state.must(running, waiting)
	} else {
		ts.removeLocked(0)
		n.state.must(running, noStatus)
	}
	ts.fired++
	ts.unlock()
	if f == nil {
		spawn(arg.(func()))
	} else {
		f(arg, seq)
	}
	ts.lock()
}

// close drops the heap.
func (ts *timers) close() {
	ts.lock()
	defer ts.unlock()
	ts.closed = true
	ts.heap = nil
	ts.changedLocked()
}
