package shard

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/detent-go/detent/internal/heap"
	"github.com/detent-go/detent/internal/rt"
	"github.com/detent-go/detent/internal/waker"
)

// Clock is what the deadlines of a group are counted on.
type Clock = waker.Clock

// The clocks that there are. See package waker.
const (
	Monotonic = waker.Monotonic
	Boottime  = waker.Boottime
	Realtime  = waker.Realtime
)

// base is what a group has whose deadlines are not counted on the runtime's
// monotonic clock.
//
// # What is different
//
// Such a clock is read anew for everything, and whether a timer is due is decided
// by a reading of it: so no timer is early by it, whatever it does. The timerfd
// counts on the same clock, and the kernel sees to it that it expires when the clock
// has come to a deadline, by itself or because it was set. Three things need more:
//
//   - The backstop counts monotonic time. When the clock has gone apart from that,
//     because it was set or the system was suspended, the backstop is armed anew. A
//     [waker.Watch] tells. Where there is none, the backstop of a shard with pending
//     timers fires every pollInterval at least, so that nothing is later than that.
//   - A clock that goes back finds the wheel ahead of it, which cannot go back. So
//     all timers are filed in the heap, whatever their grid.
//   - A ticker whose clock is set back would be silent until the clock has come to
//     the tick again that was next. So its ticks are moved back by whole periods.
//
// What the shard counts for itself, as how long a callback has been running, it
// counts in monotonic time where it matters.
//
// # Ground rules
//
// mu guards the fields below it. No shard lock is taken with it held, nor the other
// way round.
type base struct {
	// Constant.
	clock  Clock
	read   func() (ns int64, bubbled bool)
	offset func() int64 // waker.WallOffset
	on     OnMove

	// watched says that there is a watch, which makes polling unnecessary.
	watched atomic.Bool

	mu      sync.Mutex
	watch   *waker.Watch
	closed  bool
	opened  bool  // a watch has been tried to make
	retryAt int64 // rt.Now time to try again at; never: not at all
	wall    int64 // what offset returned when it was last looked at
	looked  int64 // rt.Now time of that, where there is no watch

	// What on.Set has not been told yet, and whether somebody is telling it.
	untold  time.Duration
	tells   bool
	telling bool
}

const (
	// pollInterval is how often a shard looks at a clock that nobody watches, in
	// nanoseconds.
	pollInterval = int64(time.Second)

	// The least changes of the distance between the wall clock and the other that
	// count as setting it, in nanoseconds: where the kernel has told that something
	// happened, more than the two readings are apart; otherwise, since the last look,
	// and on top of the part of the time since then that two clocks may drift apart
	// of which one is slewed and the other is not.
	leastSet      = int64(500)
	leastSetFound = int64(10 * time.Millisecond)
	mostDrift     = 1000

	// shiftTries is how often two clocks are read side by side until that has taken
	// no longer than shiftGood nanoseconds.
	shiftTries = 8
	shiftGood  = 500
)

// OnMove is what is to be called when the clock of a group has been set, or may have
// been, each on a goroutine of its own. Either may be nil.
type OnMove struct {
	// Set is called with by how much the wall clock has been set, one call at a
	// time.
	Set func(delta time.Duration)
	// Moved is called when the clock may have gone apart from monotonic time.
	Moved func()
}

// NewGroupOn is NewGroup for a group whose deadlines are counted on the given clock,
// which is not [Monotonic]. Errors are those of [waker.Clock.Reader].
func NewGroupOn(c Clock, on OnMove, cfg Config) (*Group, error) {
	read, err := c.Reader()
	if err != nil {
		return nil, err
	}
	cfg.base = &base{clock: c, read: read, offset: waker.WallOffset, on: on}
	return NewGroup(cfg), nil
}

// NewGroupFake is NewGroupOn for a clock of a test's own that stands in for the wall
// clock, which is one for the whole machine. The clock goes as fast as monotonic time
// does, until the test sets it and then calls set. No timerfd knows it.
func NewGroupFake(read func() (ns int64, bubbled bool), cfg Config) (g *Group, set func()) {
	offset := func() int64 {
		now, _ := rt.Now()
		ns, _ := read()
		return ns - now
	}
	cfg.base = &base{clock: Realtime, read: read, offset: offset, opened: true, retryAt: never, wall: offset()}
	cfg.base.watched.Store(true)
	g = NewGroup(cfg)
	for _, s := range g.shards {
		s.starting = true
	}
	return g, g.clockSet
}

// steps reports whether the clock can be set.
func (b *base) steps() bool { return b != nil && b.clock == Realtime }

// openWatch makes the watch, unless there is one or cannot be one.
func (g *Group) openWatch() {
	b := g.base
	b.mu.Lock()
	now, _ := rt.Now()
	if b.watch != nil || b.closed || b.opened && now < b.retryAt {
		b.mu.Unlock()
		return
	}
	if !b.opened {
		b.opened = true
		b.wall, b.looked = b.offset(), now
	}
	w, err := waker.NewWatch(g.clockSet)
	switch {
	case err == nil:
		b.watch = w
		b.watched.Store(true)
	case errors.Is(err, errors.ErrUnsupported):
		b.retryAt = never
	default:
		b.retryAt = now + retryAfter
	}
	b.mu.Unlock()
	if err == nil {
		g.found() // What has come before the watch.
	}
}

// poll looks whether the clock has been set, where nobody watches it. It is called
// at every wake-up, without a lock.
func (g *Group) poll() {
	g.openWatch()
	g.found()
}

// found looks whether the clock has been set since the last look, and if it has,
// sees to what follows from that.
func (g *Group) found() {
	b := g.base
	b.mu.Lock()
	now, _ := rt.Now()
	wall := b.offset()
	delta, since := wall-b.wall, now-b.looked
	set := b.opened && abs(delta) >= leastSetFound+since/mostDrift
	if set || b.opened && !b.watched.Load() { // The watch sees to what is less.
		b.wall, b.looked = wall, now
	}
	b.mu.Unlock()
	if set {
		g.moved(time.Duration(delta))
	}
}

func abs(d int64) int64 {
	if d < 0 {
		return -d
	}
	return d
}

// clockSet is called by the watch: the clock may have gone apart from monotonic time.
// If the wall clock has, it has been set.
func (g *Group) clockSet() {
	b := g.base
	b.mu.Lock()
	wall := b.offset()
	delta := wall - b.wall
	if abs(delta) < leastSet {
		delta = 0
	}
	if delta != 0 {
		b.wall = wall
	}
	b.mu.Unlock()
	g.moved(time.Duration(delta))
}

// moved has everything armed anew, and tells the user that the clock was set, if it
// was.
func (g *Group) moved(delta time.Duration) {
	g.throttle.forget()
	for _, s := range g.shards {
		go s.resync() // It may come to call callbacks.
	}
	if g.base.on.Moved != nil {
		go g.base.on.Moved()
	}
	if delta != 0 && g.base.on.Set != nil && g.base.steps() {
		g.base.tell(delta)
	}
}

// tell has on.Set called with delta, on a goroutine of its own; or with the sum of
// what has come together until a call before it returns.
func (b *base) tell(delta time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.untold += delta
	b.tells = true
	if !b.telling {
		b.telling = true
		go b.tellAll()
	}
}

func (b *base) tellAll() {
	rt.Unlabel()
	ended := false
	defer func() {
		if !ended { // The user's function has ended the goroutine.
			go b.tellAll()
		}
	}()
	for {
		b.mu.Lock()
		if !b.tells || b.closed {
			b.telling, ended = false, true
			b.mu.Unlock()
			return
		}
		delta := b.untold
		b.untold, b.tells = 0, false
		b.mu.Unlock()
		b.on.Set(delta)
	}
}

// close ends the watch.
func (b *base) close() {
	b.mu.Lock()
	b.closed = true
	w := b.watch
	b.watch = nil
	b.mu.Unlock()
	if w != nil {
		w.Close()
		w.Wait()
	}
}

// resync arms the wakers anew, now that the clock has gone apart from monotonic
// time, and fires what is due.
func (s *Shard) resync() {
	rt.Unlabel()
	s.Lock()
	if s.steps {
		s.rephaseLocked()
	}
	// Both count as not armed, so that woken arms them. What they were armed for
	// may still wake the shard, to no effect.
	s.armedPrecise, s.armedBackstop = never, never
	s.retryAt = 0
	s.Unlock()
	s.woken(false)
}

// rephaseLocked brings ticks that are more than a period ahead, because the clock
// has gone back, to within a period. It releases the lock now and then.
func (s *Shard) rephaseLocked() {
	budget := batch
	for c := 0; !s.closed && c < len(s.payloads); c++ {
		if s.payloads[c].periods == nil {
			continue
		}
		for k := range uint32(len(s.payloads[c].periods)) {
			if budget--; budget == 0 {
				budget = batch
				if s.breathe(); s.closed || s.payloads[c].periods == nil {
					break // The chunk has gone.
				}
			}
			s.rephaseNodeLocked(uint32(c)*uint32(len(s.payloads[c].periods))+k, s.payloads[c].periods[k])
		}
	}
}

// rephaseNodeLocked does so for node i, if it is one of a ticker.
func (s *Shard) rephaseNodeLocked(i uint32, period int64) {
	n := s.nodes.Node(i)
	if n.Where != heap.Where || Kind(n.Kind) != Tick {
		return
	}
	now := s.group.clock()
	if n.Deadline-now <= period {
		return
	}
	s.removeLocked(n)
	n.Lock()
	n.Deadline -= (n.Deadline - now - 1) / period * period
	s.fileLocked(i, n, now)
	n.Unlock()
}

// steady returns a monotonic time for a reading of the group's clock that has just
// been made: that reading, if the clock is one that never goes back.
func (g *Group) steady(now int64) int64 {
	if !g.base.steps() {
		return now
	}
	now, _ = rt.Now()
	return now
}

// shift returns what has to be added to a time of the group's clock to get one of
// rt.Now, from readings side by side.
func (g *Group) shift() (shift int64) {
	if g.read == nil {
		return 0
	}
	best := int64(never)
	for range shiftTries {
		before := g.clock()
		now, _ := rt.Now()
		if d := g.clock() - before; d >= 0 && d < best {
			best, shift = d, now-before-d/2
		}
		if best <= shiftGood {
			break
		}
	}
	return shift
}
