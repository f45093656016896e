package timer

import "github.com/detent-go/detent/internal/shard"

const (
	// queueBatch is the greatest number of values that a handler is called with.
	queueBatch = 256

	// queueTurns is how many times the handler is called in a wake, before other
	// timers of the service get their turn.
	queueTurns = 16

	// coarseGrid is the grid of 4.2 ms, the first that package shard does not use
	// its timerfd for: of a timer whose wake-up is not worth a system call.
	coarseGrid = uint8(coarseShift - shard.TickShift)
	// coarseShift is the binary logarithm of its nanoseconds.
	coarseShift = 22
)

// unlockAndArm releases the lock, and sets the timer if armed has been changed.
func (s *queueShard[T]) unlockAndArm() {
	if s.wantArm {
		s.arm()
		return
	}
	s.unlock()
}

// arm sets the timer to what armed says, and releases the lock.
func (s *queueShard[T]) arm() {
	s.wantArm = false
	if s.arming {
		s.rearm = true
		s.unlock()
		return
	}
	s.arming = true
	for {
		at, grid, closed := s.armed, s.armGrid, s.closed
		s.rearm = false
		s.unlock()
		switch {
		case closed:
			s.stopTimer()
		case at != queueNever:
			s.setTimer(at, grid)
		}
		s.lock()
		if !s.rearm {
			break
		}
	}
	s.arming = false
	s.unlock()
}

// setTimer sets the timer that wakes the shard. If the service has been closed
// there is none any more.
func (s *queueShard[T]) setTimer(at int64, grid uint8) {
	if s.bubble != nil {
		s.bubble.set(at, s.fire)
		return
	}
	t := shard.Timer{Deadline: at, Grid: grid, Kind: shard.Call, Func: s.fire}
	now, _ := s.group.Now()
	s.on.LockToStart()
	if h, _, ok := s.on.ResetLocked(s.wake, &t, now); ok {
		s.wake = h
	}
	s.on.EndReset(&t)
}

func (s *queueShard[T]) stopTimer() {
	if s.bubble != nil {
		s.bubble.stop()
		return
	}
	s.on.Stop(s.wake)
}

// woken is called when the shard's timer fires. It delivers what is due. If
// somebody is delivering already, it has still been good for a reading of the
// clock.
func (s *queueShard[T]) woken() {
	s.lock()
	if s.closed {
		s.unlock()
		return
	}
	s.wakeups++
	s.armed = queueNever
	s.clock.credit = 0
	now, _ := s.readLocked()
	for end := s.clock.tail; s.clock.head != end; {
		s.fileNotesLocked(4 * queueHold)
		if s.breathe(); s.closed || int32(end-s.clock.head) < 0 {
			break // Others have filed the rest.
		}
	}
	if s.closed || s.draining {
		s.unlock()
		return
	}
	s.draining, s.noArm = true, true
	held := true
	defer func() {
		// The handler may have ended the goroutine, or be panicking.
		if !held {
			clear(s.batch)
			s.lock()
		}
		s.rest()
	}()
	if s.batch == nil {
		s.unlock()
		s.batch = make([]Expired[T], queueBatch)
		s.lock()
	}
	for range queueTurns {
		n := s.gatherLocked(now)
		if n == 0 {
			break
		}
		s.unlock()
		held = false
		s.q.handler(s.batch[:n:n])
		clear(s.batch[:n])
		s.lock()
		held = true
		if s.closed {
			break
		}
		now, _ = s.readLocked()
	}
}

// gatherLocked fills the batch with what is due at the given time, and returns
// how many values that is. It lets others have the lock now and then.
func (s *queueShard[T]) gatherLocked(now int64) int {
	total := 0
	for !s.closed {
		n, _, more := s.takeLocked(s.batch[total:], now)
		total += n
		if !more || total == len(s.batch) {
			break
		}
		s.breathe()
		// What has been added meanwhile may be by a clock that has been set back.
		now, _ = s.readLocked()
	}
	return total
}

// rest ends a delivery: it has the shard woken for the next deadline, which may
// have passed already, and releases the lock.
func (s *queueShard[T]) rest() {
	s.draining, s.noArm = false, false
	if !s.closed {
		if at, grid := s.nextLocked(); at < s.armed {
			s.armed, s.armGrid, s.wantArm = at, grid, true
		}
	}
	s.unlockAndArm()
}

// nextLocked returns when the shard next has something to do, or never, and the
// grid for a timer that wakes it then.
func (c *queueCore) nextLocked() (at int64, grid uint8) {
	at, grid = queueNever, shard.Exact
	if c.heap.Len() > 0 {
		at, _, _ = c.heap.Min()
	}
	t, urgent, ok := c.wheel.Next()
	switch {
	case !ok:
	case urgent:
		if w := t << shard.TickShift; w < at {
			at, grid = w, wakeGrid(true)
		}
	default:
		// A wake-up on the coarse grid. What is rounded up here is but the head
		// start for a slot with many timers, if anything: the deadlines of a slot
		// that is not urgent are on that grid.
		if w := queueTick(t<<shard.TickShift, coarseGrid) << shard.TickShift; w < at {
			at, grid = w, coarseGrid
		}
	}
	return at, grid
}

// preciseGrid reports whether a timer of the grid is worth being woken for precisely.
func preciseGrid(grid uint8) bool { return grid < coarseGrid || grid == shard.Exact }

// wakeGrid returns the grid of the timer that wakes a shard at the time that a
// slot of its wheel wants to be looked at: a tick, precisely so, where the slot
// is urgent.
func wakeGrid(urgent bool) uint8 {
	if urgent {
		return 0
	}
	return coarseGrid
}
