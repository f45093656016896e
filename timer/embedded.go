package timer

import (
	"sync/atomic"
	"time"

	"github.com/detent-go/detent/internal/shard"
)

// Embedded is a timer that is a field of its user's struct, of a connection or a
// lease, and calls a method of that when it fires. It does what a [Timer] of
// [AfterFunc] does, without the Timer and the closure: nothing is allocated when
// it is initialized, reset, stopped, or fires. It takes 40 bytes, and 48 more of
// the engine's while it is pending.
//
//	type conn struct {
//		...
//		idle timer.Embedded
//	}
//
//	func (c *conn) Expire(*timer.Embedded) { c.close() }
//
//	c.idle.Init(nil, c)
//	c.idle.Reset(time.Minute)
//
// An Embedded must be initialized before its first use, and must not be copied
// after that: its methods panic then, and go vet tells.
//
// While the timer is pending the engine refers to it, so the collector keeps the
// whole struct that it is a field of, and what its [Expirer] refers to; and looks
// at it, as at all that is in use. A timer that is not pending is kept by nobody.
//
// A struct that goes back into a pool needs the care that it needs with
// AfterFunc: where Stop has returned false, Expire has been called or is about to
// be, and may come when the struct has its next user. Such a struct is for the
// collector, or goes back when Expire has come.
//
// All methods but Init are safe for concurrent use.
type Embedded struct {
	_ noCopy

	at   *place    // constant after Init
	self *Embedded // constant after Init; where it was initialized
	x    Expirer   // constant after Init
	// handle is the handle of the last start. It is written with the lock of
	// at.shard held, and read without it.
	handle atomic.Uint64
}

// Expirer is what an [Embedded] timer calls when it fires.
type Expirer interface {
	// Expire is called once for each time that t fires, as the callbacks of
	// AfterFunc are: as if in its own goroutine, or as [Options].Callbacks says.
	// It may use t and stop or reset it. An Expirer with several timers tells
	// them apart by comparing t with their addresses.
	Expire(t *Embedded)
}

// noCopy makes go vet report copies of what it is a field of.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// Init makes t ready for use, as a timer of service s that calls x when it fires.
// If s is nil, that is the default service. It starts nothing: that is what Reset
// does. A timer stays with the shard of the P that calls Init.
//
// A timer may be initialized again when it is not in use any more: neither pending,
// nor about to call Expire. Init panics if t is pending, or if x is nil.
func (t *Embedded) Init(s *Service, x Expirer) {
	if x == nil {
		panic("timer: Init called with a nil Expirer")
	}
	if s == nil {
		s = std()
	}
	if t.self == t && t.pending() {
		panic("timer: Init called on pending Embedded")
	}
	t.self, t.x = t, x
	t.handle.Store(0)
	if _, inBubble := s.e.group.Now(); inBubble {
		t.at = &place{svc: s, bubble: &bubbled{e: s.e, f: func() { x.Expire(t) }}}
		return
	}
	t.at = &s.places[s.e.group.Local().Index]
}

// pending reports whether an initialized timer is pending.
func (t *Embedded) pending() bool {
	if b := t.at.bubble; b != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.armed
	}
	sh := t.at.shard
	sh.Lock()
	defer sh.Unlock()
	return sh.CurrentLocked(shard.Handle(t.handle.Load()))
}

// place returns t.at, for the method named op.
func (t *Embedded) place(op string) *place {
	if t.self != t {
		t.misused(op)
	}
	return t.at
}

func (t *Embedded) misused(op string) {
	if t.self == nil {
		panic("timer: " + op + " called on uninitialized Embedded")
	}
	panic("timer: " + op + " called on copied Embedded")
}

// Reset makes the timer fire after duration d, whether it has never been started,
// is pending, or has fired or been stopped. It returns true if the timer had been
// pending; the earlier deadline has gone then. If it returns false, an earlier
// Expire may still be running, or about to be called.
//
// To reset a pending timer to a later time, as for a connection that is busy,
// changes two words and takes no lock that other timers share.
//
// Reset panics if t was not initialized, or its service is closed.
func (t *Embedded) Reset(d time.Duration) bool {
	at := t.place("Reset")
	if at.bubble != nil {
		return at.bubble.reset(d, 0, "Reset")
	}
	now, inBubble := at.svc.e.group.Now()
	if inBubble {
		panic("timer: Reset called in a synctest bubble on an Embedded initialized outside")
	}
	var st shard.Timer
	at.svc.schedule(&st, d, now)
	return t.reset(&st, now, "Reset")
}

// ResetAt is Reset with an absolute deadline. See [Service.SleepUntil] for what
// that is.
func (t *Embedded) ResetAt(when time.Time) bool {
	at := t.place("ResetAt")
	if at.bubble != nil {
		return at.bubble.reset(time.Until(when), 0, "ResetAt")
	}
	ns := at.svc.timeOf(when)
	now, inBubble := at.svc.e.group.Now()
	if inBubble {
		panic("timer: ResetAt called in a synctest bubble on an Embedded initialized outside")
	}
	var st shard.Timer
	at.svc.scheduleAt(&st, ns, now)
	return t.reset(&st, now, "ResetAt")
}

// reset makes the timer due as st says, for the method named op. The current time
// is now.
func (t *Embedded) reset(st *shard.Timer, now int64, op string) bool {
	sh := t.at.shard
	if sh.Push(shard.Handle(t.handle.Load()), st.Deadline, st.Grid) {
		return true
	}
	st.Kind, st.Target = shard.Call, (*embeddedExpiry)(t)
	st.Sample()
	sh.LockToStart()
	old := shard.Handle(t.handle.Load())
	h, pending, ok := sh.ResetLocked(old, st, now)
	if h != old {
		t.handle.Store(uint64(h))
	}
	sh.EndReset(st)
	if !ok {
		closedPanic(op)
	}
	return pending
}

// Stop prevents the timer from firing. It returns true if the call stops the
// timer; false if the timer has fired, has been stopped, or has not been started.
// It does not wait for Expire to return. Stop panics if t was not initialized.
func (t *Embedded) Stop() bool {
	at := t.place("Stop")
	if at.bubble != nil {
		return at.bubble.stop()
	}
	return at.shard.Stop(shard.Handle(t.handle.Load()))
}

// embeddedExpiry is an Embedded as the target of its timer.
type embeddedExpiry Embedded

// Fire calls the timer's Expirer.
func (e *embeddedExpiry) Fire(*shard.Shard, shard.Handle) { e.x.Expire((*Embedded)(e)) }
