package shard

import (
	"time"

	"github.com/detent-go/detent/internal/slab"
	"github.com/detent-go/detent/internal/waker"
	"github.com/detent-go/detent/internal/wheel"
)

const (
	// backstopDelay is how long after a precise deadline the backstop is armed,
	// in nanoseconds: more than an idle machine takes to wake the timerfd's
	// reader, which then pushes the backstop on, and little beside what a busy
	// scheduler takes to get to either.
	backstopDelay = int64(50 * time.Microsecond)

	// batch is how many timers are fired under one hold of the lock.
	batch = 64

	// moreCost is what filing a portion of timers again counts for in a batch.
	moreCost = 32
)

// openPrecise makes the timerfd. Where that fails the backstop serves alone.
func (s *Shard) openPrecise() {
	p, err := waker.NewPrecise(func() { s.woken(true) })
	if err != nil {
		return
	}
	s.Lock()
	if s.closed {
		s.Unlock()
		p.Close()
		return
	}
	s.precise = p
	s.armLocked(s.group.clock())
	s.Unlock()
}

// armForLocked arms the wakers for a timer that has just been filed, which
// needs the shard woken at the given time.
func (s *Shard) armForLocked(at int64, precise bool, now int64) {
	if precise && s.precise != nil {
		if at < s.armedPrecise {
			s.armedPrecise = at
			s.precise.Arm(at)
		}
		at = saturate(at, backstopDelay)
	}
	if at < s.armedBackstop {
		s.armBackstopLocked(at, now)
	}
}

// armBackstopLocked arms the backstop for the given time, or disarms it.
func (s *Shard) armBackstopLocked(at, now int64) {
	s.armedBackstop = at
	switch {
	case s.backstop == nil:
	case at == never:
		s.backstop.Disarm()
	default:
		s.backstop.Arm(at, now)
	}
}

// armLocked arms the wakers for the earliest thing to do. Where callbacks are
// due already it arms the backstop to look after the runners.
func (s *Shard) armLocked(now int64) {
	if s.closed {
		return
	}
	at, backstop := s.nextLocked()
	if min(at, backstop) <= now {
		if by := now + watchInterval; by < s.armedBackstop {
			s.armBackstopLocked(by, now)
		}
		return
	}
	if at < s.armedPrecise && s.precise != nil {
		s.armedPrecise = at
		s.precise.Arm(at)
	}
	if backstop < s.armedBackstop || s.armedBackstop < min(at, backstop) {
		// It is armed too late, or too early to find anything due.
		s.armBackstopLocked(backstop, now)
	}
}

// nextLocked returns when the shard next has something to do that wants the
// timerfd, and when the backstop is to wake it.
func (s *Shard) nextLocked() (precise, backstop int64) {
	precise, backstop = never, never
	if s.heap.Len() > 0 {
		precise, _ = s.heap.Min()
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
	return precise, min(saturate(precise, backstopDelay), backstop)
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
	s.Lock()
	if s.closed {
		s.Unlock()
		return
	}
	s.wakeups++
	if precise {
		s.armedPrecise = never
	} else {
		s.armedBackstop = never
	}
	calls := s.drainLocked(nil)
	now := s.group.clock()
	var self *runner
	if calls && !s.closed {
		n := s.runnersWantedLocked(now, !precise)
		if n > 0 && !precise {
			self = s.addRunnerLocked()
			n--
		}
		for range n {
			go s.run(s.addRunnerLocked())
		}
	}
	s.armLocked(now)
	s.Unlock()
	if self != nil {
		s.run(self)
	}
}

// drainLocked fires what is due until nothing is. As runner r it calls
// callbacks too; as a waker, with r nil, it stops in front of the first one and
// returns true, unless callbacks are inline. It releases the lock now and then,
// and returns with it held.
func (s *Shard) drainLocked(r *runner) (calls bool) {
	now := s.group.clock()
	fresh := true // nothing has been fired since the clock was read
	for budget := batch; !s.closed; {
		if budget <= 0 {
			s.breathe()
			now, fresh, budget = s.group.clock(), true, batch
			continue
		}
		i, more := s.dueLocked(now)
		if more {
			budget -= moreCost
			continue
		}
		if i == 0 {
			if fresh {
				return false
			}
			now, fresh = s.group.clock(), true
			continue
		}
		n := s.nodes.Node(i)
		if Kind(n.Kind) == Call && r == nil && !s.group.inline {
			return true
		}
		budget--
		fresh = false
		if t, h, k := s.takeLocked(i, n, now); t != nil {
			if k == Send || k == Sleep {
				t.Fire(s, h)
				continue
			}
			s.fireUnlocked(r, t, h, now)
			if r != nil && r.lost {
				return false // Others have taken over.
			}
			now, fresh, budget = s.group.clock(), true, batch
		}
	}
	return false
}

// fireUnlocked releases the lock while the target is fired.
func (s *Shard) fireUnlocked(r *runner, t Target, h Handle, now int64) {
	s.armLocked(now)
	if r != nil {
		r.calling, r.since = true, now
	}
	s.Unlock()
	t.Fire(s, h)
	s.Lock()
	if r != nil {
		r.calling = false
	}
}

// dueLocked returns the index of a timer that is filed as due, the heap's
// first, or 0. It returns true for more if it has to be called again to tell.
func (s *Shard) dueLocked(now int64) (i uint32, more bool) {
	if s.heap.Len() > 0 {
		if at, i := s.heap.Min(); at <= now {
			return i, false
		}
	}
	i, state := s.wheel.Due(now >> TickShift)
	return i, state == wheel.More
}

// takeLocked takes node i, which is filed as due, out of its container, and
// returns its target to be fired. A timer whose deadline has been pushed back is
// filed anew, and nil is returned.
func (s *Shard) takeLocked(i uint32, n *slab.Node, now int64) (t Target, h Handle, k Kind) {
	s.removeLocked(i, n)
	n.Lock()
	if n.Deadline > now {
		s.fileLocked(i, n, now)
		n.Unlock()
		return nil, 0, 0
	}
	s.fired++
	s.lateness.Record(now - n.Deadline)
	t, h, k = *s.target(i), s.nodes.Handle(i), Kind(n.Kind)
	if k == Tick {
		// The next tick that has not passed, on the ticker's own schedule.
		period := s.periods[i/slab.ChunkSize][i%slab.ChunkSize]
		n.Deadline = saturate(n.Deadline, saturate((now-n.Deadline)/period*period, period))
		s.fileLocked(i, n, now)
		n.Unlock()
		return t, h, k
	}
	n.EndLocked()
	s.freeLocked(i, n)
	return t, h, k
}

// close ends the shard.
func (s *Shard) close() {
	s.Lock()
	s.closed = true
	precise := s.precise
	s.armBackstopLocked(never, 0)
	var sleepers []Target
	keep := func(i uint32, n *slab.Node) {
		if Kind(n.Kind) == Sleep {
			sleepers = append(sleepers, *s.target(i))
		}
	}
	s.heap.Each(keep)
	s.wheel.Each(keep)
	s.nodes.Clear()
	s.targets, s.periods, s.heap, s.wheel = nil, nil, nil, nil
	s.Unlock()
	for _, t := range sleepers {
		t.Fire(s, 0)
	}
	if precise != nil {
		precise.Close()
		if !s.group.inline {
			// Inline, this may be a callback on the very goroutine.
			precise.Wait()
		}
	}
}
