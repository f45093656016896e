package timer

import "time"

// pollExtra and pollEach bound how many timers a call of Poll moves from slot to
// slot of the wheels, besides those that it returns: so many, and so many for
// each value that there is room for.
const (
	pollExtra = 4096
	pollEach  = 64
)

// Poll moves values whose time has come into buf, and returns their number. What
// is due is theirs who call Poll first: each value is returned once. For a queue
// without a handler; it panics if there is one.
//
// Poll costs a reading of the clock and a lock for each shard, and about 50
// nanoseconds for each value. The work of one call is bounded by the size of buf:
// so where very many timers are pending, and have to be sorted first, it can
// return fewer than there is room for, or none, while more are due; [Queue.Next]
// tells.
func (q *Queue[T]) Poll(buf []Expired[T]) int {
	if q.handler != nil {
		panic("timer: Poll called on a Queue with a handler")
	}
	total, extra := 0, pollExtra+pollEach*len(buf)
	from := q.polled.Add(1)
	for k := range q.shards {
		s := q.shards[(from+uint32(k))%uint32(len(q.shards))]
		n := s.poll(buf[total:], &extra)
		total += n
	}
	return total
}

func (s *queueShard[T]) poll(buf []Expired[T], extra *int) int {
	total := 0
	s.lock()
	now, ok := s.readLocked()
	if !ok {
		s.unlock()
		s.q.strayed("Poll")
	}
	for total < len(buf) && s.openLocked() {
		n, cost, more := s.takeLocked(buf[total:], now)
		total += n
		*extra -= (cost - n) * 2 // a portion of 64 is moved for queueMove
		if !more || *extra <= 0 {
			break
		}
		s.breathe()
		// What has been added meanwhile may be by a clock that has been set back.
		now, _ = s.readLocked()
	}
	s.unlock()
	return total
}

// Next returns when to call Poll next: at the earliest deadline as far as slack
// allows to put it off, or sooner. In the past, it means at once. It returns
// false if nothing is pending. A timer that another goroutine adds meanwhile can
// be due sooner. Next locks each shard in turn.
func (q *Queue[T]) Next() (time.Time, bool) {
	next := int64(queueNever)
	for _, s := range q.shards {
		s.lock()
		_, ok := s.readLocked()
		if ok && s.openLocked() {
			s.fileNotesLocked(queueNotes)
			at, _ := s.nextLocked()
			next = min(next, at)
		}
		s.unlockAndArm()
		if !ok {
			q.strayed("Next")
		}
	}
	if next == queueNever {
		return time.Time{}, false
	}
	return q.timeAt(next), true
}
