package timer

import (
	"sync/atomic"
	"time"

	"github.com/detent-go/detent/internal/shard"
)

// Timer is a single event in the future, as [time.Timer]. When it fires, the
// current time is sent on C, unless it was made by [AfterFunc]. It must be made
// with [NewTimer] or AfterFunc.
type Timer struct {
	C <-chan time.Time

	at *place // constant
	// handle is the handle of the timer's last start. It is written with the
	// lock of at.shard held, and read without it.
	handle atomic.Uint64
	fire   func() // the callback
}

// AfterFunc waits for the duration to elapse and then calls f as if in its own
// goroutine, or as [Options].Callbacks says. It returns a [Timer] that can be
// used to cancel the call. The timer's C is nil.
func (s *Service) AfterFunc(d time.Duration, f func()) *Timer {
	if f == nil {
		panic("timer: AfterFunc called with a nil function")
	}
	t := &Timer{fire: f}
	st := shard.Timer{Kind: shard.Call, Func: f}
	sh, h, ok := s.start(&st, d, "AfterFunc")
	if !ok {
		t.at = &place{svc: s, bubble: newBubbled(s.e, nil, f, d, 0)}
		return t
	}
	// Nobody else has t yet, so these need no lock.
	t.at = &s.places[sh.Index]
	t.handle.Store(uint64(h))
	return t
}

// NewTimer returns a new [Timer] that will send the current time on its channel
// after at least duration d. It need not be stopped: one that nobody refers to, nor to
// its channel, is collected, though only in the third cycle of the collector or so. It
// refers to itself: runtime.AddCleanup works on it, runtime.SetFinalizer does not.
func (s *Service) NewTimer(d time.Duration) *Timer { return s.newTimer(d, "NewTimer") }

// After waits for the duration to elapse and then sends the current time on the
// returned channel. It is NewTimer(d).C, and collected as that is.
func (s *Service) After(d time.Duration) <-chan time.Time { return s.newTimer(d, "After").C }

func (s *Service) newTimer(d time.Duration, op string) *Timer {
	x := s.newChanTimer()
	st := shard.Timer{Kind: shard.Send, Target: &x.place}
	sh, h, ok := s.start(&st, d, op)
	if !ok {
		x.bubble = newBubbled(s.e, x.C, x.sendNow, d, 0)
		return &x.Timer
	}
	x.started(sh, h)
	return &x.Timer
}

// sendTime sends t on c if there is room.
func sendTime(c chan<- time.Time, t time.Time) {
	select {
	case c <- t:
	default:
	}
}

// tells reports whether the channel has a value or will get one: whether the timer is
// pending, or has fired and nobody has received from it.
func (t *Timer) tells() bool {
	if t.at.bubble != nil {
		return true // A bubble has one clock, so whoever asks knows.
	}
	sh := t.at.shard
	sh.Lock()
	defer sh.Unlock()
	return !sh.ClosedLocked() && (sh.CurrentLocked(shard.Handle(t.handle.Load())) || len(t.at.c) > 0)
}

// Stop prevents the timer from firing. It returns true if the call stops the
// timer, false if the timer has already fired or been stopped.
//
// For a timer made by [AfterFunc], false means that the callback has been or is
// about to be called, or that the timer was stopped before; Stop does not wait
// for the callback to return.
//
// For a timer made by [NewTimer], no receive from C after Stop has returned
// gets a value from before; Stop returns true as long as the value has not been
// received.
//
// Stop panics if the timer was not made by NewTimer or AfterFunc.
func (t *Timer) Stop() bool {
	at := t.at
	if at == nil {
		panic("timer: Stop called on uninitialized Timer")
	}
	if at.bubble != nil {
		return at.bubble.stop()
	}
	sh := at.shard
	if at.c == nil {
		return sh.Stop(shard.Handle(t.handle.Load()))
	}
	// The value is sent under the shard's lock: with the lock held, the timer
	// is either pending, or its value is in the channel, or has been received.
	sh.Lock()
	ok := sh.StopLocked(shard.Handle(t.handle.Load()))
	if !sh.ClosedLocked() {
		ok = t.drain() || ok
	}
	sh.Unlock()
	return ok
}

// drain takes a value that has not been received out of the channel, and reports
// whether there was one.
func (t *Timer) drain() bool {
	select {
	case <-t.at.c:
		return true
	default:
		return false
	}
}

// Reset changes the timer to fire after duration d. It returns true if the timer
// had been pending, false if it had fired or been stopped.
//
// For a timer made by [AfterFunc], false means that the callback has been
// scheduled to run again; the earlier call may still be running. For one made by
// [NewTimer], no receive from C after Reset has returned gets a value from
// before; Reset returns true as long as that value has not been received.
//
// Resetting a pending timer to a later time, as for the deadline of a busy
// connection, changes two words and takes no lock that other timers share.
//
// Reset panics if the timer was not made by NewTimer or AfterFunc, or if its
// service is closed.
func (t *Timer) Reset(d time.Duration) bool {
	at := t.at
	if at == nil {
		panic("timer: Reset called on uninitialized Timer")
	}
	if at.bubble != nil {
		return at.bubble.reset(d, 0, "Reset")
	}
	now, inBubble := at.svc.e.group.Now()
	if inBubble {
		panic("timer: Reset called in a synctest bubble on a Timer made outside")
	}
	var st shard.Timer
	at.svc.schedule(&st, d, now)
	pending, ok := t.reset(&st, now)
	if !ok {
		closedPanic("Reset")
	}
	return pending
}

// reset makes the timer due at the deadline and with the grid of st. The current
// time is now. It returns whether the timer had been pending, and false for ok if
// the service is closed.
func (t *Timer) reset(st *shard.Timer, now int64) (_, ok bool) {
	at := t.at
	if at.shard.Push(shard.Handle(t.handle.Load()), st.Deadline, st.Grid) {
		return true, true
	}
	if at.c == nil {
		st.Kind, st.Func = shard.Call, t.fire
	} else {
		st.Kind, st.Target = shard.Send, at
	}
	sh := at.shard
	st.Sample()
	sh.LockToStart()
	old := shard.Handle(t.handle.Load())
	received := at.c == nil || sh.ClosedLocked() || !t.drain()
	h, pending, ok := sh.ResetLocked(old, st, now)
	if h != old {
		t.handle.Store(uint64(h))
	}
	sh.EndReset(st)
	return pending || !received, ok
}
