package netpoll114

import "github.com/detent-go/detent/lab/engine"

// findRunnable finds a task for the thread, and does what there is to do for timers
// on its way. It returns nil if the thread is to end.
func (m *thread) findRunnable() *task {
	for {
		if m.p == nil {
			// A task took too long.
			if m.p = m.e.takeIdle(); m.p == nil && !m.stop() {
				return nil
			}
		}
		if m.e.closing.Load() {
			m.release()
			return nil
		}
		t, again := m.look()
		if t != nil {
			return t
		}
		if again {
			continue
		}
		if t, ok := m.rest(); t != nil || !ok {
			return t
		}
	}
}

// look looks for work everywhere, and fires timers. It returns a task if it has
// found one, or whether everything should be looked at again.
func (m *thread) look() (t *task, again bool) {
	e, p := m.e, m.p
	now, _, _ := p.timers.check(0, true, p.spawn)
	if p.ticks++; p.ticks%61 == 0 {
		// Now and then the queue of all comes first, lest two tasks that start
		// each other keep it waiting for ever.
		if t := e.getGlobal(p); t != nil {
			return t, false
		}
	}
	if t := p.runq.get(); t != nil {
		return t, false
	}
	if t := e.getGlobal(p); t != nil {
		return t, false
	}

	// At most half as many threads look as work.
	if !m.spinning {
		if busy := int32(len(e.procs)) - e.nidle.Load(); 2*e.nspinning.Load() >= busy {
			return nil, false
		}
		m.spinning = true
		step("spin")
		e.nspinning.Add(1)
	}
	const rounds = 4
	for round := range rounds {
		start := m.random()
		for i := range uint32(len(e.procs)) {
			other := e.procs[(start+i)%uint32(len(e.procs))]
			if e.closing.Load() {
				return nil, true
			}
			if other == p {
				continue
			}
			step("look")
			if t, n := p.runq.steal(&other.runq); t != nil {
				e.steals.Add(uint64(n))
				return t, false
			}
			// The timers of a P that is looking for work are its own affair.
			if round == rounds-1 && other.is() != inUse {
				var ran bool
				if now, _, ran = other.timers.check(now, false, p.spawn); ran {
					e.steals.Add(1)
					// What was fired may have made tasks, as many as the queue holds: there
					// is no room for stolen ones then.
					if t := p.runq.get(); t != nil {
						return t, false
					}
					again = true
				}
			}
		}
		if again {
			return nil, true
		}
	}
	return nil, false
}

// rest gives up the P, and waits: in the netpoller if there are timers and nobody
// else does, or else parked. It returns when there may be something to do, with a
// P again or with a task and a P. It reports false if the thread is to end.
func (m *thread) rest() (t *task, ok bool) {
	e, p := m.e, m.p
	step("rest")
	e.mu.Lock()
	if t := e.getGlobalLocked(p); t != nil {
		e.mu.Unlock()
		return t, true
	}
	m.p = nil
	e.putIdleLocked(p)
	e.mu.Unlock()
	spun := m.spinning
	if spun {
		m.spinning = false
		step("rested")
		e.nspinning.Add(-1)
	}

	// From here on, whoever starts a timer or a task finds an idle P and nobody
	// spinning, and will wake a thread. What was started before is found now.
	next, work := m.recheck()
	if work && m.take(true) {
		// Spinning, though others may spin: who only looks at what is its own
		// would come here again and again until they find it.
		return nil, true
	}
	step("poll")
	if next != 0 && e.lastpoll.Swap(0) != 0 {
		step("until")
		e.pollUntil.Store(next)
		step("wait")
		e.wait(next)
		e.pollUntil.Store(0)
		step("polled")
		e.lastpoll.Store(engine.Now())
		if m.take(spun) {
			return nil, true
		}
	} else if next != 0 {
		// Somebody else waits, perhaps for too long.
		if until := e.pollUntil.Load(); until == 0 || until > next {
			e.netpollBreak()
		}
	}
	return nil, m.stop()
}

// recheck looks at everything again, without a lock, but for the timers of P's that
// are in use: whose thread that is will come here in its turn. It returns when the next
// timer is due, 0 for never, and whether there is anything to do at once.
func (m *thread) recheck() (next int64, work bool) {
	step("recheck")
	work = m.e.nglobal.Load() > 0 // the runtime of those years forgot that one
	for _, p := range m.e.procs {
		step("recheck")
		work = work || p.runq.len() > 0
		if p.is() == inUse {
			continue
		}
		work = work || p.timers.adjust.Load() > 0
		next = earlier(next, p.timers.first.Load())
	}
	return next, work || next != 0 && next <= engine.Now()
}

// take takes an idle P, if there is one, and begins to spin if so asked.
func (m *thread) take(spin bool) bool {
	if m.p = m.e.takeIdle(); m.p == nil {
		return false
	}
	if spin {
		m.spinning = true
		step("spin again")
		m.e.nspinning.Add(1)
	}
	return true
}

// release gives up the thread's P for good.
func (m *thread) release() {
	if m.spinning {
		m.spinning = false
		m.e.nspinning.Add(-1)
	}
	if m.p != nil {
		m.e.putIdle(m.p)
		m.p = nil
	}
}

// earlier returns the earlier of two deadlines, of which 0 is none.
func earlier(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
