package shard

import (
	"github.com/detent-go/detent/internal/rt"
	"github.com/detent-go/detent/internal/slab"
)

// Timer is what starts or restarts a timer.
type Timer struct {
	Deadline int64 // rt.Now time; not negative
	Grid     uint8
	Kind     Kind
	Func     func() // what is called when the timer is due,
	Target   Target // if there is no Func; a Tick has a Target
	Period   int64  // nanoseconds, for a Tick; greater than 0

	sample uint64 // its number in the profile, until its node has it; or 0
}

// Start starts a timer on the shard of the caller's P, and returns the shard.
// The current time, read just before, is now. It returns false if the group is
// closed. The timer may fire before Start returns.
func (g *Group) Start(t *Timer, now int64) (*Shard, Handle, bool) {
	t.Sample()
	s := g.lock()
	if !s.closed && s.nodes.Full() {
		s.reserveLocked()
	}
	h, ok := s.startLocked(t, now)
	s.endStart(t)
	return s, h, ok
}

// soon is the distance of a deadline, in nanoseconds, within which the clock is
// read again when a timer is started: it may have passed, and a timer that is due
// is fired without a wake-up, which takes a hundred times as long.
const soon = 1000

// startLocked starts a timer on this shard, and returns false if the shard is
// closed. A Send or Sleep that is due is fired at once, and its handle is 0. The
// caller has made room for the node, and calls endStart instead of Unlock.
func (s *Shard) startLocked(t *Timer, now int64) (Handle, bool) {
	if s.closed {
		return 0, false
	}
	if t.Deadline-now < soon {
		now = s.group.clock()
	}
	if s.steps && t.Kind == Tick {
		// A clock set after this reading finds the ticker here; one that was set
		// between the caller's reading and this one has not.
		now = s.group.clock()
		t.Deadline = min(t.Deadline, saturate(now, t.Period))
	}
	due := t.Deadline <= now
	if due && (t.Kind == Send || t.Kind == Sleep) {
		s.started++
		s.fired++
		s.lateness.Record(now - t.Deadline)
		w := atWork(now)
		s.blame.record(&w, t.Deadline, t.Deadline, now)
		action{t.Func, t.Target}.fire(s, 0)
		return 0, true
	}
	i, n := s.nodes.Alloc()
	n.Deadline, n.Grid, n.Kind = t.Deadline, t.Grid, uint8(t.Kind)
	s.setLocked(i, t)
	if t.Kind == Send && !s.sweeps {
		s.sweepLaterLocked(t)
	}
	if t.sample != 0 {
		s.keepSampleLocked(i, t)
	}
	s.started++
	at, precise := s.fileLocked(i, n, now)
	if due && t.Kind == Call && !s.group.inline {
		s.callLocked(now)
	} else {
		s.armForLocked(at, precise, now)
	}
	return n.Handle(i), true
}

// callLocked sees to a callback that is due already, without a wake-up: there
// is a runner who comes to it, or one is started.
func (s *Shard) callLocked(now int64) {
	w := atWork(now)
	for range s.runnersWantedLocked(s.writeOffLocked(now), false) {
		s.startRunnerLocked(&w, now)
	}
}

// RestartLocked ends timer h, pending or not, and starts t in its place under a
// new handle: nothing that still has the old handle finds it current. The lock
// is held by the caller, who calls [Shard.EndReset] instead of Unlock. It
// returns false if the shard is closed.
func (s *Shard) RestartLocked(h Handle, t *Timer, now int64) (Handle, bool) {
	if s.closed {
		return 0, false
	}
	s.endForReset(h)
	return s.startLocked(t, now)
}

// endForReset ends timer h, which is about to be started anew, so that the two
// count as a reset. It returns false if h is not pending.
func (s *Shard) endForReset(h Handle) bool {
	if !s.StopLocked(h) {
		return false
	}
	s.stopped--
	s.started--
	s.reset++
	return true
}

// EndReset is Unlock after ResetLocked or RestartLocked with t.
func (s *Shard) EndReset(t *Timer) { s.endStart(t) }

// endStart releases the lock, and makes the timerfd if the timer that has been
// started is the first that wants one. A manual group has none; it tells who
// waits for timers to be started.
func (s *Shard) endStart(t *Timer) {
	need := s.precise == nil && !s.starting && (s.eager || s.urgent(t.Grid)) && !s.closed && s.retryLocked()
	if need {
		s.starting = s.group.manual == nil
	}
	sweep := s.wantSweep
	s.wantSweep = false
	s.Unlock()
	if sweep {
		s.group.armSweep()
	}
	switch {
	case !need:
	case s.group.manual != nil:
		s.group.manual.noteStart()
	default:
		s.openPrecise()
	}
	if t.sample != 0 {
		forget(t.sample) // It has fired already, or was in the profile before.
	}
}

// Stop stops a timer. It returns false if the timer has fired or been stopped
// before, or the shard is closed.
func (s *Shard) Stop(h Handle) bool {
	n := s.nodes.Lookup(h)
	if n == nil || !n.Current(h) {
		return false
	}
	s.Lock()
	ok := s.stopLocked(h, n)
	s.Unlock()
	return ok
}

// StopLocked is Stop for a caller that holds the lock.
func (s *Shard) StopLocked(h Handle) bool {
	n := s.nodes.Lookup(h)
	return n != nil && s.stopLocked(h, n)
}

func (s *Shard) stopLocked(h Handle, n *slab.Node) bool {
	// After a close nodes that were looked up before look as they did.
	if s.closed || !n.End(h) {
		return false
	}
	s.removeLocked(n)
	s.freeLocked(h.Index(), n)
	s.stopped++
	return true
}

// ClosedLocked reports whether the shard is closed.
func (s *Shard) ClosedLocked() bool { return s.closed }

// CurrentLocked reports whether timer h is pending.
func (s *Shard) CurrentLocked(h Handle) bool { return s.nodes.Current(h) }

// Push pushes timer h back to a new deadline and grid without the shard lock.
// It returns false, having done nothing, if the timer is not pending, is filed
// after its new place, or is being changed by somebody else.
func (s *Shard) Push(h Handle, deadline int64, grid uint8) bool {
	n := s.nodes.Lookup(h)
	if n == nil || !n.Current(h) {
		return false
	}
	p := rt.Pin()
	ok := n.TryLock(h)
	if ok {
		// What has been filed without the timerfd in mind is filed anew.
		ok = pushable(n, deadline, grid) && (urgent(n.Grid) || !urgent(grid))
		if ok {
			n.Deadline, n.Grid = deadline, grid
		}
		n.Unlock()
	}
	if ok {
		c := s
		if rt.Pinned {
			c = s.group.shardOf(p)
		}
		c.pushed.Add(1)
	}
	rt.Unpin()
	return ok
}

// pushable reports whether node n, whose lock the caller holds, is filed no
// later than the new deadline and grid ask for.
func pushable(n *slab.Node, deadline int64, grid uint8) bool {
	limit := limitOf(deadline, grid)
	if n.Tick == 0 {
		// In the heap, under the limit that the node has now or an earlier one.
		return limit >= limitOf(n.Deadline, n.Grid)
	}
	return limit>>TickShift >= n.Tick
}

// ResetLocked makes timer h due at t.Deadline, and returns its handle, which may
// be another one, and true; or, if h is not pending, starts t anew and returns
// its handle and false. The lock is held by
// the caller, who calls [Shard.EndReset] instead of Unlock. ok is false if the shard is
// closed.
func (s *Shard) ResetLocked(h Handle, t *Timer, now int64) (_ Handle, pending, ok bool) {
	if s.closed {
		return 0, false, false
	}
	if !s.nodes.Current(h) {
		h, ok = s.startLocked(t, now)
		return h, false, ok
	}
	if t.Deadline-now < soon {
		pending = s.endForReset(h)
		h, ok = s.startLocked(t, now)
		return h, pending, ok
	}
	i := h.Index()
	n := s.nodes.Node(i)
	s.removeLocked(n)
	n.Lock()
	n.Deadline, n.Grid = t.Deadline, t.Grid
	at, precise := s.fileLocked(i, n, now)
	n.Unlock()
	s.reset++
	s.armForLocked(at, precise, now)
	return h, true, true
}
