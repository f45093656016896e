package timer

import (
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/detent-go/detent/internal/rt"
	"github.com/detent-go/detent/internal/shard"
)

// Queue keeps deadlines for values: the form for millions of them. A value that
// is added with a duration is handed back, in a batch with others, once the
// duration has elapsed, unless it is stopped before. A timer is not a closure,
// channel or object, but a [Handle].
//
// # Delivery
//
// A queue made with a handler calls it with batches of 1 to 256 expired values,
// where the callbacks of its service run: on a goroutine that the deadline
// wakes, or inline. For values of one shard (see below) calls never overlap; for
// those of different shards they may. So the handler of a service with one shard
// is never called concurrently. A handler that blocks holds up the values of its
// shard; they stay pending, can be stopped or reset, and are delivered when it
// returns. What else it holds up is as for other callbacks: nothing, unless the
// service is an [Inline] one.
//
// A queue made without a handler wakes nobody and starts no goroutine. Its user
// calls [Queue.Poll], and asks [Queue.Next] when to: for event loops and tests.
//
// # Guarantees
//
// Never early, by the clock of its service. A value is delivered once, unless Stop has
// returned true for it or the queue has been closed; then it is not. Values come
// roughly in the order of their deadlines, and no more than that is promised.
//
// # Cost
//
// A pending timer takes 38 bytes beside its value. The collector does not look at
// them, nor at values without pointers. In a steady state nothing is allocated:
// memory is taken for 1,024 timers or more at a time, and let go when all of them
// have gone. Add, Reset and Stop take the lock of one shard, about 12 ns if nobody
// else has it, and as long again for the rest, but for reading the clock; it is
// the same however many timers are pending, but for exact ones, see
// [Options].Slack. Values are copied: T should be small, or a pointer.
//
// # Concurrency
//
// All methods are safe for concurrent use. A queue has as many shards as its
// service; a value stays with the shard of the P that added it.
//
// # Bubbles
//
// A queue made inside a testing/synctest bubble keeps the bubble's time, and is
// exact there, whatever the slack of its service. Only goroutines of its bubble
// can use it, and those inside a bubble can stop but not add or reset what is in
// a queue made outside: across the border, what needs the clock panics.
type Queue[T any] struct {
	svc     *Service
	handler func([]Expired[T]) // nil: polled
	closed  atomic.Bool
	shards  []*queueShard[T]
	bubble  *queueBubble // nil outside of bubbles

	polled atomic.Uint32 // counts calls of Poll, each of which begins with another shard

	// local finds the shard of the current P in a build that cannot ask for
	// the P, as in package shard.
	local sync.Pool
	turn  atomic.Uint32
}

// Handle names one timer of a [Queue]. It is a small value, which can be copied
// and compared, and means something to the queue that returned it alone. Once
// its timer has expired or been stopped it names nothing, like the zero Handle:
// using it is harmless, and it never comes to name another timer.
type Handle struct {
	// Few fields, and all of a size: a Handle is passed in registers, and one
	// that has just been stored is read back without waiting.
	index uint32 // of the node
	word  uint32 // the node's generation in the slab; 0 only in the zero Handle
	// mark is, from the highest bit on, the shard's number, 16 bits; the queue's
	// tag, which tells most handles of other queues, 8 bits; the node's generation
	// within word, 8 bits.
	mark uint32
}

const (
	shardShift = 16
	tagShift   = 8
)

// Expired is a value whose time has come.
type Expired[T any] struct {
	Value T // what was added
	// Handle is what Add returned for the value. It names nothing any more;
	// but the value's owner can compare it with the handle that it waits for.
	Handle Handle
}

// maxQueueShards is what a Handle has room for.
const maxQueueShards = 1 << 16

// queueTags counts the queues made.
var queueTags atomic.Uint32

// NewQueue returns an empty queue of service s, which has it woken, and whose
// slack its timers have: pass a view made by [Service.WithSlack] for another
// slack. If s is nil, the queue is one of the default service. If handler is nil
// the queue is polled.
//
// The batch that the handler is called with is its to read and write until it
// returns. If the handler ends its goroutine, by runtime.Goexit, then that batch
// counts as delivered, and the rest is not held up. A panic is not recovered.
//
// NewQueue starts nothing. A shard takes 19 KB, or 27 with a handler; from its
// first timer on 50 KB more, and room for 1,024 values. When s is closed, nothing
// is delivered any more; adding or resetting panics, as NewQueue does.
func NewQueue[T any](s *Service, handler func(batch []Expired[T])) *Queue[T] {
	if s == nil {
		s = std()
	}
	if s.e.group.Closed() {
		closedPanic("NewQueue")
	}
	q := &Queue[T]{svc: s, handler: handler}
	on := s.e.group.Shards()
	on = on[:min(len(on), maxQueueShards)]
	now, inBubble := s.e.group.Now()
	if inBubble {
		q.bubble = &queueBubble{base: time.Now()}
		on, now = []*shard.Shard{nil}, 0
	}
	tag := queueTags.Add(1) & math.MaxUint8
	for i := range on {
		q.shards = append(q.shards, newQueueShard(q, uint32(i)<<shardShift|tag<<tagShift, on[i], now))
	}
	if !rt.Pinned {
		q.local.New = func() any { return q.shards[int(q.turn.Add(1)-1)%len(q.shards)] }
	}
	return q
}

// lock locks the shard of the P that the caller, the method named op, runs on.
func (q *Queue[T]) lock(op string) *queueShard[T] {
	if !rt.Pinned {
		q.made(op)
		s := q.local.Get().(*queueShard[T])
		q.local.Put(s)
		s.mu.Lock()
		return s
	}
	shards := q.shards // Who is pinned must not panic: that is for a nil q.
	p := rt.Pin()
	if p >= len(shards) {
		rt.Unpin()
		q.made(op)
		rt.Pin() // perhaps another P, which makes the other shard no wrong one
		p %= len(shards)
	}
	s := shards[p]
	if !s.mu.TryLock() {
		s.waitLock()
	}
	return s
}

// made panics, for the method named op, unless the queue was made by NewQueue.
func (q *Queue[T]) made(op string) {
	if len(q.shards) == 0 {
		panic("timer: " + op + " called on uninitialized Queue")
	}
}

// Add adds v, to be delivered once the duration d has elapsed; at once, if d is
// zero or negative. It panics if the queue or its service is closed.
//
// Reading the clock is more than half of its cost, and not always needed. Where a
// shard of a queue with a handler is given more than about 500,000 timers a second
// of 5 seconds or more (with a fixed slack of 17 milliseconds or more: of so
// much), it reads the clock for 64 of them at a time, and is woken within 4
// milliseconds to read it once more. By what lies in between they are late: that
// is part of their slack.
func (q *Queue[T]) Add(d time.Duration, v T) Handle {
	s := q.lock("Add")
	if !s.roomLocked() {
		q.refuseLocked(s, "Add")
	}
	if s.guessesLocked(int64(d)) {
		i, n := s.nodes.Alloc()
		n.Deadline, n.Kind, n.Where = s.guessLocked(d), kindGuessed, whereNoted
		s.noteLocked(i, n)
		return s.addedLocked(i, n, v)
	}
	now, ok := s.timeLocked(int64(d))
	if !ok {
		q.refuseLocked(s, "Add")
	}
	i, n := s.nodes.Alloc()
	s.placeLocked(i, n, deadline(d, now), s.gridFor(int64(d)))
	return s.addedLocked(i, n, v)
}

// AddAt is Add with an absolute deadline. With a fixed slack it reads the clock
// only if the deadline is the earliest of its shard: it is for a loop that knows
// the time. With the automatic slack it does so always, to learn the duration. A
// deadline without a monotonic reading, unlike the times of time.Now and their
// sums, is as far away as the wall clock says when it is added.
func (q *Queue[T]) AddAt(at time.Time, v T) Handle {
	ns := q.timeOf(at, "AddAt")
	s := q.lock("AddAt")
	if !s.roomLocked() {
		q.refuseLocked(s, "AddAt")
	}
	grid, ok := s.gridAtLocked(ns)
	if !ok {
		q.refuseLocked(s, "AddAt")
	}
	i, n := s.nodes.Alloc()
	s.placeLocked(i, n, ns, grid)
	return s.addedLocked(i, n, v)
}

// Reset makes the value that h names due once the duration d has elapsed from
// now on, instead of when it was due before, and returns true. If h names
// nothing any more, because the value is in a batch already or has been stopped,
// it does nothing and returns false; the value can be added again. It panics if
// the queue or its service is closed.
//
// To a later time it costs less than Add, and reads the clock as seldom: the timer
// is filed anew only when its earlier deadline comes.
func (q *Queue[T]) Reset(h Handle, d time.Duration) bool {
	s := q.lockOf(h, "Reset")
	if !s.openLocked() {
		q.refuseLocked(s, "Reset")
	}
	n := s.findLocked(h)
	if n == nil {
		s.unlock()
		return false
	}
	if s.guessesLocked(int64(d)) {
		s.resetGuessLocked(h.index, n, d)
		s.unlock()
		return true
	}
	now, ok := s.timeLocked(int64(d))
	if !ok {
		q.refuseLocked(s, "Reset")
	}
	s.resetLocked(h.index, n, deadline(d, now), s.gridFor(int64(d)))
	s.unlockAndArm()
	return true
}

// ResetAt is Reset with an absolute deadline. It reads the clock when AddAt does.
func (q *Queue[T]) ResetAt(h Handle, at time.Time) bool {
	ns := q.timeOf(at, "ResetAt")
	s := q.lockOf(h, "ResetAt")
	if !s.openLocked() {
		q.refuseLocked(s, "ResetAt")
	}
	n := s.findLocked(h)
	if n == nil {
		s.unlock()
		return false
	}
	grid, ok := s.gridAtLocked(ns)
	if !ok {
		q.refuseLocked(s, "ResetAt")
	}
	s.resetLocked(h.index, n, ns, grid)
	s.unlockAndArm()
	return true
}

// Stop takes the value that h names out of the queue and returns true: it will
// not be delivered. If h names nothing any more, because the value is in a batch
// already or has been stopped, it returns false. Stop does not wait for the
// handler. On a closed queue it returns false.
func (q *Queue[T]) Stop(h Handle) bool {
	q.stay("Stop")
	s := q.lockOf(h, "Stop")
	n := s.findLocked(h)
	if n == nil {
		s.unlock()
		return false
	}
	s.removeLocked(n)
	s.stopped++
	s.freeLocked(h.index, n)
	s.unlock()
	return true
}

// lockOf locks the shard that h's timer is in, or any if there is none, for the
// method named op.
func (q *Queue[T]) lockOf(h Handle, op string) *queueShard[T] {
	k := int(h.mark >> shardShift)
	if k >= len(q.shards) {
		q.made(op)
		k = 0
	}
	s := q.shards[k]
	s.lock()
	return s
}

// Len returns the number of values that have been neither delivered nor stopped.
// It locks each shard in turn.
func (q *Queue[T]) Len() int {
	n := 0
	for _, s := range q.shards {
		s.lock()
		n += s.pendingLocked()
		s.unlock()
	}
	return n
}

// Stats returns the queue's counts. They are as those of [Service.Stats], and
// cost as much; the timers that wake the queue are counted there, and their lateness
// blamed there. Fired is the number of values delivered, Wakeups that of wakes by
// the service; Blame, Waker and WakerErr are empty.
func (q *Queue[T]) Stats() Stats {
	sum := new(shard.Stats)
	for _, s := range q.shards {
		s.addStats(sum)
	}
	return Stats{
		Started: sum.Started, Stopped: sum.Stopped, Reset: sum.Reset,
		Fired: sum.Fired, Pending: sum.Pending, Wakeups: sum.Wakeups,
		Lateness: Histogram{&sum.Lateness},
	}
}

// Close empties the queue: what is pending is not delivered. Values in a batch
// that has been put together are; Close does not wait for the handler, which may
// call it. Afterwards Stop returns false, and Poll 0; adding or resetting
// panics. Nothing of the queue is left running, and its memory is released. Close returns an
// error if the queue is closed already.
func (q *Queue[T]) Close() error {
	q.stay("Close")
	if q.closed.Swap(true) {
		return errors.New("timer: queue already closed")
	}
	for _, s := range q.shards {
		s.close()
	}
	return nil
}

// refuseLocked releases the lock and panics, for the method named op, because s
// is closed or its clock could not be read.
func (q *Queue[T]) refuseLocked(s *queueShard[T], op string) {
	closed := s.closed
	s.unlock()
	switch {
	case closed:
		panic("timer: " + op + " called on closed Queue")
	case q.svc.e.group.Closed():
		panic("timer: " + op + " called on Queue of closed Service")
	}
	q.strayed(op)
}

// timeOf returns the time of the queue's clock that t stands for, for the method
// named op.
func (q *Queue[T]) timeOf(t time.Time, op string) int64 {
	if q.bubble != nil {
		q.stay(op)
		return max(0, int64(t.Sub(q.bubble.base)))
	}
	q.made(op)
	if t == t.Round(0) || q.svc.e.clock == Boottime { // The service reads the clock, which has to be possible.
		if _, inBubble := q.svc.e.group.Now(); inBubble {
			q.strayed(op)
		}
	}
	return q.svc.timeOf(t)
}

// timeAt returns the time.Time of a time of the queue's clock.
func (q *Queue[T]) timeAt(ns int64) time.Time {
	if q.bubble != nil {
		return q.bubble.base.Add(time.Duration(ns))
	}
	return q.svc.timeAt(ns)
}
