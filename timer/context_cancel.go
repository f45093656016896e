package timer

import (
	"context"

	"github.com/detent-go/detent/internal/shard"
)

// ctxExpiry is a context as the target of its timer.
type ctxExpiry deadlineCtx

// Fire ends the context. It does not block, though it may wait for locks that
// are held while trees of contexts end.
func (e *ctxExpiry) Fire(*shard.Shard, shard.Handle) { (*deadlineCtx)(e).expire() }

// expire is called by the timer, perhaps before the field timer is written.
func (t *deadlineCtx) expire() {
	e := ctxEnd{err: context.DeadlineExceeded, expired: true, fired: true}
	switch up := t.parentless(); up {
	case nil:
	case t:
		e = t.parentEnd()
		e.fired = true
	default:
		up.cancel(up.parentEnd())
	}
	t.cancel(e)
}

// cancelByUser is the cancel function of the context. Where the parent has ended
// first, that is what ends the context; package context may call it for that.
func (t *deadlineCtx) cancelByUser() {
	t.settle()
	if t.bond != nil && t.bond.up == t && !t.ended() && t.parent.Err() != nil {
		t.cancel(t.parentEnd())
		return
	}
	t.cancel(ctxEnd{err: context.Canceled})
}

// settle ends the context if a parent that is not of this package has ended, but
// the goroutine that is to tell has not come to it.
func (t *deadlineCtx) settle() {
	if up := t.parentless(); up != nil {
		up.cancel(up.parentEnd())
	}
}

// parentless returns which of the context and its ancestors, up to the first with
// a parent that is not of this package, has to end now because that parent has;
// or nil.
func (t *deadlineCtx) parentless() *deadlineCtx {
	if t.bond == nil || t.bond.up == nil || t.ended() {
		return nil
	}
	select {
	case <-t.bond.up.bond.done:
		return t.bond.up
	default:
		return nil
	}
}

// parentEnd returns the end of a context whose parent has ended.
func (t *deadlineCtx) parentEnd() ctxEnd {
	e := ctxEnd{err: t.parent.Err(), cause: context.Cause(t.parent)}
	if e.err == nil {
		e.err = context.Canceled // The parent breaks the rules.
	}
	return e
}

// parentCanceled ends a context that is in no list because its parent has ended.
func (t *deadlineCtx) parentCanceled() {
	e := t.parentEnd()
	e.orphan = true
	t.cancel(e)
}

// ctxEnd is why a context ends.
type ctxEnd struct {
	err     error
	cause   error // nil: err. Of no account where expired
	expired bool  // by the deadline, with the cause given for that
	fired   bool  // found out by the timer, which is past stopping
	orphan  bool  // the context is in no list
}

// cancel ends the context and all that depend on it, unless it has ended.
func (t *deadlineCtx) cancel(e ctxEnd) {
	t.mu.Lock()
	if t.ended() {
		t.mu.Unlock()
		return
	}
	t.endLocked(e)
	t.mu.Unlock()
	if !e.fired {
		t.stopTimer()
	}
	if !e.orphan {
		t.leave()
	}
}

// endLocked does the part of cancel that others must not see half done: when
// any of them gets the lock, all descendants have ended.
func (t *deadlineCtx) endLocked(e ctxEnd) {
	end := uint32(ctxOther)
	switch e.err {
	case context.Canceled:
		end = ctxCanceled
	case context.DeadlineExceeded:
		end = ctxExceeded
	}
	if e.cause != nil && end != ctxOther && e.cause == t.errOf(end) {
		e.cause = nil
	}
	if b := t.bond; b != nil {
		b.err = e.err
		if !e.expired {
			b.cause = e.cause
		}
		e.cause = b.cause
	}
	t.state.Store(t.state.Load() | end)
	if t.cancelFace != nil {
		t.carryCause()
		t.cancelFace()
		t.cancelFace = nil
	}
	for c := t.children.first; c != nil; c = t.children.first {
		t.children.remove(c)
		c.cancel(ctxEnd{err: e.err, cause: e.cause, orphan: true})
	}
}

func (t *deadlineCtx) stopTimer() {
	switch {
	case t.timer == nil:
	case t.timer.bubble != nil:
		t.timer.bubble.stop()
	default:
		t.timer.shard.Stop(t.handle)
	}
}

// leave takes an ended context out of the list that it is in.
func (t *deadlineCtx) leave() {
	switch b := t.bond; {
	case b == nil:
	case b.own != nil:
		b.own.mu.Lock()
		b.own.children.remove(t)
		b.own.mu.Unlock()
	case b.hub != nil:
		b.hub.leave(t)
	case b.stop != nil:
		t.unlinkAlone(b.stop)
	}
}

// adopt makes c a child of t.
func (t *deadlineCtx) adopt(c *deadlineCtx) {
	t.mu.Lock()
	if !t.ended() {
		if c.enter(t, nil) {
			t.children.add(c)
		}
		t.mu.Unlock()
		return
	}
	e := ctxEnd{err: t.errOf(t.state.Load()), orphan: true}
	if t.bond != nil {
		e.cause = t.bond.cause
	}
	t.mu.Unlock()
	c.cancel(e)
}

// enter notes whose list t is about to be put into, whose mu is held; or reports
// that t has ended, and is not to be put there. From here on the end of t takes
// it out.
func (t *deadlineCtx) enter(own *deadlineCtx, h *ctxHub) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended() {
		return false
	}
	t.bond.own, t.bond.hub = own, h
	return true
}

// ctxList is a list of contexts, linked through their bonds.
type ctxList struct{ first *deadlineCtx }

func (l *ctxList) add(t *deadlineCtx) {
	t.bond.linked = true
	t.bond.next = l.first
	if l.first != nil {
		l.first.bond.prev = t
	}
	l.first = t
}

// remove does nothing if t is not in the list.
func (l *ctxList) remove(t *deadlineCtx) {
	b := t.bond
	if !b.linked {
		return
	}
	if b.prev != nil {
		b.prev.bond.next = b.next
	} else {
		l.first = b.next
	}
	if b.next != nil {
		b.next.bond.prev = b.prev
	}
	b.linked, b.prev, b.next = false, nil, nil
}
