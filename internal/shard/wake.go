package shard

import (
	"runtime/trace"
	"time"

	"github.com/detent-go/detent/internal/slab"
	"github.com/detent-go/detent/internal/waker"
	"github.com/detent-go/detent/internal/wheel"
)

const (
	// While the timerfd's reader comes in time, the backstop is armed for at
	// most calmDelay after a precise deadline, and pushed on long before it
	// fires. Arming it closer would cost another thread's wake-up each time
	// that it moves to earlier, since the runtime then has some thread look at
	// its timers. Once the reader has been late, or the backstop has had to do
	// its work, the Go scheduler is busy, and the backstop is armed tightDelay
	// after each precise deadline; until the reader has been in time for
	// calmAfter wakes in a row. In nanoseconds.
	calmDelay  = int64(10 * time.Millisecond)
	tightDelay = int64(50 * time.Microsecond)
	calmAfter  = 64

	// inTime is how late the reader may come and count as in time, in
	// nanoseconds.
	inTime = int64(2 * time.Millisecond)

	// batch is how many timers are fired under one hold of the lock.
	batch = 64

	// rounds is how often a waker goes over what is due before it leaves the
	// rest to the next wake-up.
	rounds = 8

	// moreCost is what filing a portion of timers again counts for in a batch.
	moreCost = 32
)

// openPrecise makes the timerfd. Where that fails the backstop serves alone, and
// it is tried again later.
func (s *Shard) openPrecise() {
	if s.group.base != nil {
		s.group.openWatch()
	}
	p, err := s.newAlarm()
	s.checkAlarm(err)
	var witness *waker.Witness
	if p, ok := p.(*waker.Precise); ok && err == nil && s.group.witness != nil {
		witness = s.group.witness.watch(s, p)
	}
	s.Lock()
	if err != nil {
		s.failedLocked(err)
		s.Unlock()
		return
	}
	if s.closed {
		s.Unlock()
		p.Close()
		return
	}
	s.precise, s.preciseErr, s.witness = p, nil, witness
	if s.group.base != nil {
		s.armedBackstop = never // Where the clock is watched now, it need not poll.
	}
	s.armLocked(s.group.clock())
	s.Unlock()
}

// armForLocked arms the wakers for a timer that has just been filed, which
// needs the shard woken at the given time. A waker that is armed for a time that
// has passed is about to call woken, which will arm it anew: to move it again and
// again would keep it from firing.
func (s *Shard) armForLocked(at int64, precise bool, now int64) {
	if precise && s.precise != nil {
		if at < s.armedPrecise && now < s.armedPrecise {
			s.armPreciseLocked(at, now)
		}
		at = saturate(at, s.backstopDelay())
	}
	if at < s.armedBackstop && now < s.armedBackstop {
		s.armBackstopLocked(at)
	}
}

// armPreciseLocked arms the timerfd for the given time.
func (s *Shard) armPreciseLocked(at, now int64) {
	s.armedPrecise, s.preciseFrom = at, max(at, now)
	s.precise.Arm(at)
}

// armBackstopLocked arms the backstop for the given time, or disarms it. Where
// there is none it never counts as armed: no wake-up is late by it.
func (s *Shard) armBackstopLocked(at int64) {
	if s.backstop == nil {
		return
	}
	s.armedBackstop = at
	if at == never {
		s.backstop.Disarm()
		return
	}
	now := s.group.clock()
	if b := s.group.base; b != nil && !b.watched.Load() {
		at = min(at, saturate(now, pollInterval))
		s.armedBackstop = at
	}
	s.backstopFrom = max(at, now)
	s.atOnce = s.backstopFrom-now < tightDelay
	s.backstop.Arm(at, now)
}

// yieldLocked lets goroutines have their turn that wait for a P, those too that have
// been made ready here, before runner or waker w goes on. It releases the lock
// meanwhile, and returns the time.
//
// Whoever is due again whenever he has seen to what was due would otherwise have the
// P for good. A runner or the timerfd's reader does not wait then, nor can it be
// preempted while it is pinned, as it is nearly always. And the goroutine of a runtime
// timer runs before all others in its P's queue, so that one that arms the next timer
// for the past makes a chain of them.
func (s *Shard) yieldLocked(w *wakeup, now int64) int64 {
	w.handed = now
	s.Unlock()
	waker.Yield()
	s.Lock()
	w.begun = s.group.clock()
	return w.begun
}

// yieldBackstopLocked is yieldLocked for what the backstop has called, the rounds'th
// time in a row at once. Should there be no turn for it soon, the backstop comes again.
func (s *Shard) yieldBackstopLocked(w *wakeup, now int64) {
	if !s.atOnce {
		s.hurried = 0
		return
	}
	s.hurried++
	if s.hurried < rounds || s.yielding || s.backstop == nil {
		return
	}
	s.hurried, s.yielding = 0, true
	s.armBackstopLocked(saturate(now, tightDelay))
	s.yieldLocked(w, now)
	s.yielding = false
}

func (s *Shard) backstopDelay() int64 {
	if s.busy > 0 {
		return tightDelay
	}
	return calmDelay
}

// judge takes note of by how much the timerfd's reader is late; a negative value
// is that of a wake-up without an expiry, and says nothing.
func (s *Shard) judge(late int64) {
	switch {
	case late > inTime:
		s.busy = calmAfter
	case late >= 0 && s.busy > 0:
		s.busy--
	}
}

// armLocked arms the wakers for the earliest thing to do. Where a runner is at
// work, or is to be, it arms the backstop to look after it.
func (s *Shard) armLocked(now int64) {
	if s.closed {
		return
	}
	at, backstop := s.nextLocked()
	if len(s.runners) > 0 {
		// What is due already, a runner at work will come to by itself.
		if at <= now {
			at = never
		}
		if backstop <= now {
			backstop = never
		}
		if !s.group.inline {
			backstop = min(backstop, now+s.watchLocked())
		}
	}
	// As in armForLocked, one that is armed for the past is left alone.
	if at < s.armedPrecise && now < s.armedPrecise && s.precise != nil {
		s.armPreciseLocked(at, now)
	}
	if s.yielding {
		backstop = max(backstop, saturate(now, tightDelay))
	}
	// The backstop may be armed too late. Or too early to find anything due:
	// then it is moved, in good time, or just left to fire if that is far off.
	// While runners are at work it is not moved to later: it looks after them.
	// Nor where it looks at whether the clock has been set.
	polls := s.group.base != nil && !s.group.base.watched.Load()
	if now < s.armedBackstop && (backstop < s.armedBackstop || len(s.runners) == 0 && !polls &&
		s.armedBackstop < min(at, backstop) && s.armedBackstop < now+calmDelay/2) {
		s.armBackstopLocked(backstop)
	}
}

// nextLocked returns when the shard next has something to do that wants the
// timerfd, and when the backstop is to wake it.
func (s *Shard) nextLocked() (precise, backstop int64) {
	precise, backstop = never, never
	if s.heap.Len() > 0 {
		precise, _, _ = s.heap.Min()
	}
	if t, urgent, ok := s.wheel.Next(); ok {
		if at := t << TickShift; urgent {
			precise = min(precise, at)
		} else {
			backstop = at
		}
	}
	if s.precise == nil {
		return precise, min(precise, backstop)
	}
	return precise, min(saturate(precise, s.backstopDelay()), backstop)
}

// saturate returns t+d, or never where that overflows. Neither is negative.
func saturate(t, d int64) int64 {
	if t > never-d {
		return never
	}
	return t + d
}

// woken is called by the wakers, on goroutines of theirs: by the timerfd's
// reader with precise set, by the backstop without.
func (s *Shard) woken(precise bool) {
	if b := s.group.base; b != nil && !b.watched.Load() {
		s.group.poll()
	}
	running := s.group.clock()
	s.Lock()
	if s.closed {
		s.Unlock()
		return
	}
	var w wakeup
	s.wakeupLocked(&w, running, precise)
	if w.running == running && running-w.armed > lookAt && s.group.manual == nil {
		// Before armedPrecise is reset: another waker may come meanwhile.
		s.Unlock()
		s.blameQuota(&w, w.armed, running)
		s.Lock()
		if s.closed {
			s.Unlock()
			return
		}
	}
	s.wakeups++
	if precise {
		s.judge(running - s.armedPrecise)
		s.armedPrecise = never
	} else {
		s.armedBackstop = never
		if running-s.armedPrecise > tightDelay {
			s.judge(never) // The reader should have been here.
		}
		s.yieldBackstopLocked(&w, running)
	}
	calls := s.drainLocked(nil, &w)
	now := s.group.clock()
	for n := 0; n < rounds && !calls && !s.closed; n++ {
		// What is due again already would only make the wakers fire at once.
		if at, backstop := s.nextLocked(); min(at, backstop) > now {
			break
		}
		calls = s.drainLocked(nil, &w)
		now = s.group.clock()
	}
	var self *runner
	if s.closed {
		s.Unlock()
		return
	}
	lost := s.writeOffLocked(now)
	if calls {
		n := s.runnersWantedLocked(lost, !precise)
		if n > 0 && (!precise || s.long == 0 || s.group.inline) {
			self = s.addRunnerLocked(&w)
			self.reader = precise
			n--
		}
		for range n {
			s.startRunnerLocked(&w, now)
		}
	}
	s.armLocked(now)
	retry := s.retriesLocked()
	s.Unlock()
	if retry {
		s.openPrecise()
	}
	if self != nil {
		s.run(self)
	}
}

// wakeupLocked sets w to the wakeup of a waker that has come to run. What it has
// been asked for first is what counts; but a reader in a callback is no fault of
// the kernel's. Who finds another one at work, who just lets others have the lock,
// does that one's work.
func (s *Shard) wakeupLocked(w *wakeup, running int64, precise bool) {
	if s.breathing {
		*w = s.between
		return
	}
	armed := running
	w.toldFrom = never
	if s.armedPrecise <= running && (precise || !s.readerCallsLocked()) {
		armed = min(armed, s.preciseFrom)
		if s.witness != nil {
			s.tellLocked(w, running)
		}
	}
	if s.armedBackstop <= running {
		armed = min(armed, s.backstopFrom)
	}
	w.armed, w.running, w.handed, w.begun = armed, running, running, running
	s.laneTellsLocked(w)
}

// drainLocked fires what is due, because of w. As runner r it calls callbacks
// too, and goes on until nothing is due; as a waker, with r nil, it fires what is
// due when it is called, and stops in front of the first callback and returns true. It releases
// the lock now and then, and returns with it held.
//
// What is due is decided by one reading of the clock for a pass over all of it:
// timers that start themselves again at once, like a ticker of a nanosecond, do
// not keep others from their turn. Nor do they keep other goroutines from theirs: a
// runner lets these have it every few passes.
func (s *Shard) drainLocked(r *runner, w *wakeup) (calls bool) {
	now := s.group.clock()
	pass, passed, passes := now, 0, 0
	for budget := batch; !s.closed; {
		if budget <= 0 {
			s.between, s.breathing = *w, true
			s.breathe()
			s.breathing = false
			now, budget = s.group.clock(), batch
			continue
		}
		pass = min(pass, now) // The clock may have been set back.
		i, more := s.dueLocked(pass, now)
		if more {
			budget -= moreCost
			continue
		}
		if i == 0 {
			if r == nil || passed == 0 {
				return false
			}
			now = s.group.clock()
			if passes++; passes == rounds && s.group.manual == nil {
				if s.group.lane != nil {
					return false // It has turns of its own.
				}
				s.armLocked(now)
				passes, now = 0, s.yieldLocked(w, now)
			}
			pass, passed = now, 0
			continue
		}
		n := s.nodes.Node(i)
		if Kind(n.Kind) == Call && r == nil {
			return true
		}
		budget--
		passed++
		if a, h, k, ok := s.takeLocked(i, n, w, now); ok {
			if k != Call {
				a.fire(s, h)
				continue
			}
			s.callUnlocked(r, a, h, now)
			if r.lost {
				return false // Others have taken over.
			}
			began := now
			now, budget = s.group.clock(), batch
			s.lengthLocked(now - began)
		}
	}
	return false
}

// callUnlocked releases the lock while runner r calls a callback.
func (s *Shard) callUnlocked(r *runner, a action, h Handle, now int64) {
	s.armLocked(now)
	r.calling, r.since = true, s.group.steady(now)
	s.calls++
	s.Unlock()
	if trace.IsEnabled() {
		a.fireTraced(s, h, r.wakeup.deadline)
	} else {
		a.fire(s, h)
	}
	s.unlabel() // The callback may have set some.
	s.Lock()
	r.calling = false
}

// watchLocked returns the time after which to look after the runners.
func (s *Shard) watchLocked() int64 {
	if s.long > 0 {
		return watchInterval
	}
	return calmDelay
}

// lengthLocked takes note of how long a callback took.
func (s *Shard) lengthLocked(ns int64) {
	switch {
	case ns > shortCall:
		s.long = afterLong
	case s.long > 0:
		s.long--
	}
}

// dueLocked returns the index of a timer that is filed as due for a pass that
// began at pass, or 0. It returns true for more if it has to be called again to
// tell. Between two timers of the wheel comes one of the heap, even if that has
// become due only since: neither a burst in the wheel nor a ticker in the heap
// holds up the other by more than one timer.
func (s *Shard) dueLocked(pass, now int64) (i uint32, more bool) {
	precise, deadline := uint32(0), int64(never)
	if s.heap.Len() > 0 {
		_, deadline, precise = s.heap.Min()
	}
	if deadline <= now && !s.wheelsTurn {
		s.wheelsTurn = true
		if deadline <= pass || s.wheel.Len() > 0 && s.wheelDueLocked(pass) {
			return precise, false
		}
	}
	s.wheelsTurn = false
	i, state := s.wheel.Due(pass >> TickShift)
	switch {
	case state == wheel.Due && len(s.wheel.Ahead) > 0:
		s.loadLocked(s.wheel.Ahead)
	case state == wheel.None && deadline <= pass:
		return precise, false
	}
	return i, state == wheel.More
}

// wheelDueLocked reports whether the wheel has something to do for a pass.
func (s *Shard) wheelDueLocked(pass int64) bool {
	t, _, ok := s.wheel.Next()
	return ok && t<<TickShift <= pass
}

// takeLocked takes node i, which is filed as due, out of its container, and
// returns what it does, to be fired. A timer whose deadline has been pushed back is
// filed anew, and ok is false.
func (s *Shard) takeLocked(i uint32, n *slab.Node, w *wakeup, now int64) (a action, h Handle, k Kind, ok bool) {
	s.removeLocked(n)
	n.Lock()
	if n.Deadline > now {
		s.fileLocked(i, n, now)
		n.Unlock()
		return action{}, 0, 0, false
	}
	s.fired++
	w.deadline = n.Deadline
	s.lateness.Record(now - n.Deadline)
	s.blame.record(w, n.Deadline, limitOf(n.Deadline, n.Grid), now)
	a, h, k = s.actionLocked(i), n.Handle(i), Kind(n.Kind)
	if k == Tick {
		// The next tick that has not passed, on the ticker's own schedule.
		period := s.payloads[i/slab.ChunkSize].periods[i%slab.ChunkSize]
		n.Deadline = saturate(n.Deadline, saturate((now-n.Deadline)/period*period, period))
		s.fileLocked(i, n, now)
		n.Unlock()
		return a, h, k, true
	}
	n.EndLocked()
	s.freeLocked(i, n)
	return a, h, k, true
}

// close ends the shard.
func (s *Shard) close() {
	s.Lock()
	s.closed = true
	precise := s.precise
	s.armBackstopLocked(never)
	if precise != nil && (s.group.inline && s.group.lane == nil || s.readerCallsLocked()) {
		// The reader may be in a callback, even the one that closes the group:
		// it is not waited for.
		precise.Replace()
	}
	s.Unlock()

	// From here on nobody else touches what is filed: everybody who takes the
	// lock looks at closed first. So the walk over it, however long, needs no
	// lock, and keeps nobody from stopping the world.
	keep := func(i uint32, n *slab.Node) {
		if Kind(n.Kind) == Sleep {
			a := s.actionLocked(i)
			a.fire(s, 0)
		}
	}
	s.heap.Each(keep)
	s.wheel.Each(keep)

	if s.sampled != 0 {
		s.forgetAll()
	}

	s.Lock()
	s.nodes.Clear()
	s.payloads, s.heap, s.wheel = nil, nil, nil
	s.Unlock()
	if precise != nil {
		precise.Close()
		precise.Wait()
	}
}
