package netpoll114

// takeIdle takes a P off the list of idle ones, for the caller to use; nil if there
// is none.
func (e *Engine) takeIdle() *proc {
	step("take")
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.takeIdleLocked()
}

func (e *Engine) takeIdleLocked() *proc {
	last := len(e.idleProcs) - 1
	if last < 0 || e.closing.Load() {
		return nil
	}
	p := e.idleProcs[last]
	e.idleProcs = e.idleProcs[:last]
	e.nidle.Add(-1)
	p.become(inUse)
	return p
}

// putIdleLocked puts the caller's P on the list of idle ones, or hands it to Close.
func (e *Engine) putIdleLocked(p *proc) {
	p.become(idle)
	e.idleProcs = append(e.idleProcs, p)
	e.nidle.Add(1)
	if e.closing.Load() && len(e.idleProcs) == len(e.procs) {
		close(e.stopped)
	}
}

func (e *Engine) putIdle(p *proc) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.putIdleLocked(p)
}

// wakep has another thread look for work, if a P is idle and nobody is looking yet.
func (e *Engine) wakep() {
	step("nidle")
	if e.nidle.Load() == 0 {
		return
	}
	step("nspinning")
	if e.nspinning.Load() == 0 && e.nspinning.CompareAndSwap(0, 1) {
		e.startThread(nil, true)
	}
}

// startThread is startm: it gives p, or an idle P if p is nil, to an idle thread or to
// a new one. If spinning, the thread has been counted in nspinning.
func (e *Engine) startThread(p *proc, spinning bool) {
	step("start")
	e.mu.Lock()
	if p == nil {
		p = e.takeIdleLocked()
	} else if e.closing.Load() {
		e.putIdleLocked(p)
		p = nil
	}
	if p == nil {
		e.mu.Unlock()
		if spinning {
			e.nspinning.Add(-1)
		}
		return
	}
	if last := len(e.idleThreads) - 1; last >= 0 {
		m := e.idleThreads[last]
		e.idleThreads = e.idleThreads[:last]
		m.next, m.nextSpin = p, spinning
		e.mu.Unlock()
		m.park.Wakeup()
		return
	}
	e.mu.Unlock()
	seed := uint32(e.threads.Add(1)) * 0x9e3779b9 // not 0, which xorshift would not leave
	m := &thread{e: e, p: p, spinning: spinning, park: e.sys.newNote(), rand: seed}
	e.sys.start("lab-m", m.schedule)
}

// handOff is handoffp: p, whose thread is held up, goes to another thread if there
// is anything to do for it.
func (e *Engine) handOff(p *proc) {
	switch {
	case p.runq.len() > 0 || e.nglobal.Load() > 0:
		e.startThread(p, false)
	case e.nspinning.Load()+e.nidle.Load() == 0 && e.nspinning.CompareAndSwap(0, 1):
		// Nobody else looks for work.
		e.startThread(p, true)
	default:
		e.mu.Lock()
		if len(e.global) > 0 {
			e.mu.Unlock()
			e.startThread(p, false)
			return
		}
		e.putIdleLocked(p)
		e.mu.Unlock()
		if when := p.timers.first.Load(); when != 0 {
			e.wakeNetPoller(p, when)
		}
	}
}

// put makes a task runnable on p, the caller's.
func (e *Engine) put(p *proc, t *task) {
	if !p.runq.put(t) {
		// Half of the queue goes to the queue of all.
		var batch [runqSize / 2]*task
		n := p.runq.grab(&batch)
		e.putGlobal(append(batch[:n:n], t)...)
	}
	e.wakep()
}

// putGlobal puts tasks into the queue of all.
func (e *Engine) putGlobal(ts ...*task) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.global = append(e.global, ts...)
	e.nglobal.Store(int32(len(e.global)))
}

// getGlobal takes the P's share of the queue of all, and returns one of the tasks, or
// nil.
func (e *Engine) getGlobal(p *proc) *task {
	if e.nglobal.Load() == 0 {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.getGlobalLocked(p)
}

func (e *Engine) getGlobalLocked(p *proc) *task {
	if len(e.global) == 0 {
		return nil
	}
	n := min(len(e.global)/len(e.procs)+1, len(e.global), runqSize/2)
	t := e.global[0]
	for i, more := range e.global[1:n] {
		if !p.runq.put(more) {
			n = 1 + i
			break
		}
	}
	clear(e.global[:n])
	e.global = e.global[n:]
	if len(e.global) == 0 {
		e.global = nil // what has been taken from its front is free again
	}
	e.nglobal.Store(int32(len(e.global)))
	return t
}
