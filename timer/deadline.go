package timer

import (
	"time"

	"github.com/detent-go/detent/internal/rt"
	"github.com/detent-go/detent/internal/shard"
)

// monotonicOf returns the time of package rt's clock for t, 0 or more, or false if t
// has no monotonic reading.
func monotonicOf(t time.Time) (int64, bool) {
	if t == t.Round(0) {
		return 0, false
	}
	return max(rt.At(t), 0), true
}

// monotonicAt returns the time.Time of a time of package rt's clock, with a
// monotonic reading.
func monotonicAt(ns int64) time.Time {
	t := time.Now()
	return t.Add(time.Duration(ns - rt.At(t)))
}

// scheduleAt sets t's deadline and grid to those of a timer that is started now
// and due at a time of the service's clock, or at once if that has passed.
func (s *Service) scheduleAt(t *shard.Timer, at, now int64) {
	t.Deadline = max(at, now)
	t.Grid = s.gridFor(time.Duration(t.Deadline - now))
}

// AfterFuncAt is AfterFunc with an absolute deadline: it calls f once the time at
// has come, or at once if it has passed. See [Service.SleepUntil] for what a
// deadline is.
func (s *Service) AfterFuncAt(at time.Time, f func()) *Timer {
	if f == nil {
		panic("timer: AfterFuncAt called with a nil function")
	}
	t := &Timer{fire: f}
	s.startFuncAt(t, at, "AfterFuncAt")
	return t
}

// NewTimerAt is NewTimer with an absolute deadline: the timer sends the current
// time on its channel once the time at has come, or at once if it has passed. See
// [Service.SleepUntil] for what a deadline is.
func (s *Service) NewTimerAt(at time.Time) *Timer { return s.newTimerAt(at, "NewTimerAt") }

func (s *Service) newTimerAt(at time.Time, op string) *Timer {
	x := s.newChanTimer()
	st := shard.Timer{Kind: shard.Send, Target: &x.place}
	sh, h, ok := s.startAt(&st, at, op)
	if !ok {
		x.bubble = newBubbled(s.e, x.C, x.sendNow, time.Until(at), 0)
		return &x.Timer
	}
	x.started(sh, h)
	return &x.Timer
}

// startFuncAt starts a new timer that calls t.fire.
func (s *Service) startFuncAt(t *Timer, at time.Time, op string) {
	st := shard.Timer{Kind: shard.Call, Func: t.fire}
	sh, h, ok := s.startAt(&st, at, op)
	if !ok {
		t.at = &place{svc: s, bubble: newBubbled(s.e, nil, t.fire, time.Until(at), 0)}
		return
	}
	// As in AfterFunc.
	t.at = &s.places[sh.Index]
	t.handle.Store(uint64(h))
}

// startAt is start for an absolute deadline.
func (s *Service) startAt(t *shard.Timer, at time.Time, op string) (*shard.Shard, shard.Handle, bool) {
	ns := s.timeOf(at)
	now, inBubble := s.e.group.Now()
	if inBubble {
		if s.e.group.Closed() {
			closedPanic(op)
		}
		return nil, 0, false
	}
	s.scheduleAt(t, ns, now)
	sh, h, ok := s.e.group.Start(t, now)
	if !ok {
		closedPanic(op)
	}
	return sh, h, true
}

// ResetAt is Reset with an absolute deadline: the timer fires once the time at
// has come, or at once if it has passed. See [Service.SleepUntil] for what a
// deadline is.
//
// Where a program knows the time anyway, as one does that has just been woken by
// the network, ResetAt(now.Add(timeout)) is the same as Reset(timeout) and makes
// the deadline count from that moment.
func (t *Timer) ResetAt(at time.Time) bool {
	p := t.at
	if p == nil {
		panic("timer: ResetAt called on uninitialized Timer")
	}
	if p.bubble != nil {
		return p.bubble.reset(time.Until(at), 0, "ResetAt")
	}
	ns := p.svc.timeOf(at)
	now, inBubble := p.svc.e.group.Now()
	if inBubble {
		panic("timer: ResetAt called in a synctest bubble on a Timer made outside")
	}
	var st shard.Timer
	p.svc.scheduleAt(&st, ns, now)
	pending, ok := t.reset(&st, now)
	if !ok {
		closedPanic("ResetAt")
	}
	return pending
}

// setAt is ResetAt, but returns false if the service is closed.
func (t *Timer) setAt(at time.Time) bool {
	if b := t.at.bubble; b != nil {
		if b.e.group.Closed() {
			return false
		}
		b.reset(time.Until(at), 0, "")
		return true
	}
	ns := t.at.svc.timeOf(at)
	now, _ := t.at.svc.e.group.Now()
	var st shard.Timer
	t.at.svc.scheduleAt(&st, ns, now)
	_, ok := t.reset(&st, now)
	return ok
}
