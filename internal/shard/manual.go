package shard

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/detent-go/detent/internal/slab"
)

// manual is the virtual time of a group that has it.
//
// Time is moved by whoever calls Advance, step by step, each to the next time at
// which there is something to do. No lock is held over a step or a callback. So
// several goroutines can do so at once, and a callback can, while the Advance
// that called it waits: each moves the time on from where it is, and never back,
// and each fires what is due then.
type manual struct {
	epoch time.Time // constant
	now   atomic.Int64

	mu sync.Mutex
	// started is closed when a timer is started, for those who wait for that;
	// nil if nobody does.
	started chan struct{}
}

// manualEnd is where virtual time ends, in 292 years. Timers that are due later,
// which are filed at the end of time, never fire.
const manualEnd = maxTick<<TickShift - 1

func (m *manual) read() (ns int64, bubbled bool) { return m.now.Load(), false }

// moveTo moves the time on to t, unless it is there or later.
func (m *manual) moveTo(t int64) {
	for now := m.now.Load(); now < t && !m.now.CompareAndSwap(now, t); {
		now = m.now.Load()
	}
}

// noteStart wakes those who wait for timers to be started.
func (m *manual) noteStart() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.started != nil {
		close(m.started)
		m.started = nil
	}
}

// nextStart returns a channel that is closed when a timer is started.
func (m *manual) nextStart() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.started == nil {
		m.started = make(chan struct{})
	}
	return m.started
}

// Manual reports whether the group keeps virtual time.
func (g *Group) Manual() bool { return g.manual != nil }

// Time returns the current time: that of a manual group, which has no monotonic
// reading, or that of package time.
func (g *Group) Time() time.Time {
	if m := g.manual; m != nil {
		return g.TimeAt(m.now.Load())
	}
	return time.Now()
}

// Time returns the group's.
func (s *Shard) Time() time.Time { return s.group.Time() }

// TimeOf returns the time of a manual group that t stands for; 0, if that lies
// before its beginning.
func (g *Group) TimeOf(t time.Time) int64 { return max(0, int64(t.Sub(g.manual.epoch))) }

// TimeAt returns what a time of a manual group stands for.
func (g *Group) TimeAt(ns int64) time.Time { return g.manual.epoch.Add(time.Duration(ns)) }

// Next returns the time at which a manual group next has something to do, or
// false if nothing is pending. That is not always the firing of a timer, but
// never after the next one.
func (g *Group) Next() (int64, bool) {
	next := int64(never)
	for _, s := range g.shards {
		s.Lock()
		if !s.closed {
			precise, backstop := s.nextLocked()
			next = min(next, precise, backstop)
		}
		s.Unlock()
	}
	return next, next != never
}

// NextLimit returns the time at which a timer of a manual group fires next, or
// false if none ever does. It takes time in proportion to the timers in the
// wheel.
func (g *Group) NextLimit() (int64, bool) {
	next := int64(never)
	for _, s := range g.shards {
		s.Lock()
		if !s.closed {
			next = min(next, s.firstLimitLocked())
		}
		s.Unlock()
	}
	return next, next <= manualEnd
}

func (s *Shard) firstLimitLocked() int64 {
	next := int64(never)
	for s.heap.Len() > 0 {
		limit, _, i := s.heap.Min()
		n := s.nodes.Node(i)
		n.Lock()
		pushed := limitOf(n.Deadline, n.Grid) > limit
		if pushed {
			s.heap.Remove(n)
			s.fileLocked(i, n, s.group.clock())
		}
		n.Unlock()
		if !pushed {
			next = limit
			break
		}
	}
	s.wheel.Each(func(_ uint32, n *slab.Node) {
		n.Lock()
		next = min(next, limitOf(n.Deadline, n.Grid))
		n.Unlock()
	})
	return next
}

// Advance moves the time of a manual group on to the given time, or to the end
// of time, and fires on the caller's goroutine what is due up to then, in steps:
// at each, the clock stands at the time of the step. If the time is there or
// later, it fires what is due. It can be called concurrently and in callbacks.
func (g *Group) Advance(to int64) {
	to = min(to, manualEnd)
	for !g.closed.Load() {
		at, ok := g.Next()
		if !ok || at > to {
			// Others may start timers until the time is there.
			if g.clock() >= to {
				return
			}
			g.manual.moveTo(to)
			continue
		}
		if at <= g.clock() {
			runtime.Gosched() // Another goroutine may be about to do it.
		}
		g.manual.moveTo(at)
		for _, s := range g.shards {
			s.woken(false)
		}
	}
	g.manual.moveTo(to)
}

// manualWantedLocked returns how many runners are to be started, now that a
// callback is due: one, the caller, unless another is at work that is not
// waiting for its callback to return, which may be what calls.
func (s *Shard) manualWantedLocked() int {
	for _, r := range s.runners {
		if !r.calling {
			return 0
		}
	}
	return 1
}

// AwaitPending waits until n timers of a manual group are pending, or the
// context is done: then it returns the context's cause.
func (g *Group) AwaitPending(ctx context.Context, n int) error {
	for {
		// Before it is looked, lest a start in between be missed.
		started := g.manual.nextStart()
		if int(g.Pending()) >= n {
			return nil
		}
		select {
		case <-started:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Pending returns the number of pending timers. It locks each shard in turn.
func (g *Group) Pending() (n uint64) {
	for _, s := range g.shards {
		s.Lock()
		n += uint64(s.nodes.Len())
		s.Unlock()
	}
	return n
}
