package netpoll114

// thread is an M. Its fields are its own, but for park and next.
type thread struct {
	e        *Engine
	p        *proc // nil if it has none
	spinning bool  // it looks for work, and is counted in nspinning
	word     uint64
	rand     uint32

	// These are for stop, and for whoever gives it a P then.
	park     note
	next     *proc // nil if the engine is closed
	nextSpin bool
}

// schedule is the loop of a thread. It runs until the engine is closed, or there are
// enough idle threads.
func (m *thread) schedule() {
	ended := false
	defer func() {
		if !ended {
			m.lost()
		}
		m.e.threads.Add(-1)
	}()
	for t := m.findRunnable(); t != nil; t = m.findRunnable() {
		m.execute(t)
	}
	ended = true
}

// execute runs a task. Afterwards the thread may have lost its P.
func (m *thread) execute(t *task) {
	if m.spinning {
		m.stopSpinning()
	}
	m.word = m.p.enterTask()
	// Close may have looked at the P before it was in a task, and waits for it.
	if !m.e.closing.Load() {
		m.e.wakeMonitor()
		(*t)()
	}
	if !m.p.leaveTask(m.word, inUse) {
		m.p = nil
	}
}

// lost is called when a task has ended the thread's goroutine (runtime.Goexit). The P
// goes to another thread.
func (m *thread) lost() {
	if p := m.p; p != nil && p.leaveTask(m.word, inUse) {
		m.e.handOff(p)
	}
}

// stopSpinning is resetspinning: the thread has found work, and lets somebody else
// look for more.
func (m *thread) stopSpinning() {
	m.spinning = false
	step("stopSpinning")
	if m.e.nspinning.Add(-1) == 0 {
		m.e.wakep()
	}
}

// stop parks the thread, which has no P, until it is given one. It reports false if
// the thread is to end.
func (m *thread) stop() bool {
	e := m.e
	step("stop")
	e.mu.Lock()
	if e.closing.Load() || len(e.idleThreads) >= len(e.procs) {
		// The runtime keeps every thread for ever.
		e.mu.Unlock()
		return false
	}
	m.park.Clear()
	e.idleThreads = append(e.idleThreads, m)
	e.mu.Unlock()
	m.park.Sleep(-1)
	e.wakeups.Add(1)
	if m.next == nil {
		return false
	}
	m.p, m.next = m.next, nil
	m.spinning = m.nextSpin
	return true
}

// random returns the next number of a xorshift generator.
func (m *thread) random() uint32 {
	x := m.rand
	x ^= x << 13
	x ^= x >> 17
	x ^= x << 5
	m.rand = x
	return x
}
