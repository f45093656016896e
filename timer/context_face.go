package timer

import (
	"context"
	"time"
)

// A context's face is the context of package context that stands for it towards
// that package.
//
// Package context links a child to its parent directly where it recognizes the
// parent as its own: the parent's Value answers to a private key, and its Done is
// the channel of that answer. Then the child needs no goroutine, however many
// layers of values are in between, and Cause finds the cause. So a deadlineCtx
// that is asked for Done hands out the channel of its face, and hands on what it
// is asked by that key, which it does not know, by asking the face first.
//
// A face is canceled only by the context that it stands for. CancelFunc would
// not do: that sets Canceled. But package context lets a parent of foreign type
// have an AfterFunc method, calls it when a child is made, and hands it a
// function that cancels the child as the parent has been canceled, at once and
// on the caller's goroutine. So a face is the child of a [ctxSeed], which keeps
// that function and answers for Err, and for Cause, when it is called.

// ctxSeed is a deadlineCtx as the parent of its face. Package context calls its
// methods in a few places, and always in a call that is made with mu held; but
// for Value, which is called at any time.
type ctxSeed deadlineCtx

// Deadline says nothing: nobody asks a face for its deadline.
func (s *ctxSeed) Deadline() (time.Time, bool) { return time.Time{}, false }

// Done returns an open channel while the context is live, for the sake of which
// package context asks for AfterFunc.
func (s *ctxSeed) Done() <-chan struct{} {
	if (*deadlineCtx)(s).ended() {
		return ctxClosed
	}
	return ctxOpen
}

// These are made here, and not when they are first used: that may be in a
// synctest bubble, to which they would belong.
var (
	ctxOpen   = make(chan struct{})
	ctxClosed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()
)

func (s *ctxSeed) Err() error {
	t := (*deadlineCtx)(s)
	return t.errOf(t.state.Load())
}

// Value answers to nothing but package context's question for the cause.
func (s *ctxSeed) Value(key any) any {
	if s.bond == nil {
		return nil
	}
	if carrier, ok := s.bond.carrier.Load().(context.Context); ok {
		return carrier.Value(key)
	}
	return nil
}

// AfterFunc is called when the face is made.
func (s *ctxSeed) AfterFunc(f func()) (stop func() bool) {
	s.cancelFace = f
	return neverStops
}

// neverStops is the function that would take a face from its seed.
func neverStops() bool { return false }

// std returns the face, which it makes if there is none.
func (t *deadlineCtx) std() context.Context {
	if t.state.Load()&ctxFaced != 0 {
		return t.face
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.state.Load(); s&ctxFaced == 0 {
		if s&ctxEndMask != ctxLive {
			t.carryCause()
		}
		face, cancel := context.WithCancel((*ctxSeed)(t))
		_ = cancel // The seed has got what does it.
		t.face = face
		t.state.Store(s | ctxFaced)
	}
	return t.face
}

// carryCause makes the seed answer for the cause, if that is not Err itself. The
// context has ended, and its mu is held.
func (t *deadlineCtx) carryCause() {
	if t.bond == nil || t.bond.cause == nil || t.bond.carrier.Load() != nil {
		return
	}
	carrier, cancel := context.WithCancelCause(context.Background())
	cancel(t.bond.cause)
	t.bond.carrier.Store(carrier)
}
