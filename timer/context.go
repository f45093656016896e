package timer

import (
	"context"
	"time"

	"github.com/detent-go/detent/internal/rt"
	"github.com/detent-go/detent/internal/shard"
)

// WithTimeout is [Service.WithTimeout] of the default service.
func WithTimeout(parent context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	return std().WithTimeout(parent, timeout)
}

// WithTimeoutCause is [Service.WithTimeoutCause] of the default service.
func WithTimeoutCause(parent context.Context, timeout time.Duration, cause error) (context.Context, context.CancelFunc) {
	return std().WithTimeoutCause(parent, timeout, cause)
}

// WithDeadline is [Service.WithDeadline] of the default service.
func WithDeadline(parent context.Context, d time.Time) (context.Context, context.CancelFunc) {
	return std().WithDeadline(parent, d)
}

// WithDeadlineCause is [Service.WithDeadlineCause] of the default service.
func WithDeadlineCause(parent context.Context, d time.Time, cause error) (context.Context, context.CancelFunc) {
	return std().WithDeadlineCause(parent, d, cause)
}

// WithTimeout returns WithDeadline(parent, s.Now().Add(timeout)).
//
// Canceling this context releases resources associated with it, so code should
// call cancel as soon as the operations running in this context complete:
//
//	ctx, cancel := timer.WithTimeout(ctx, 100*time.Millisecond)
//	defer cancel()
//	return slowOperation(ctx)
func (s *Service) WithTimeout(parent context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	now := s.Now()
	return s.withDeadline(parent, now, timeout, now.Add(timeout), nil, "WithTimeout")
}

// WithTimeoutCause is WithTimeout, and also sets the cause of the returned
// context (see [context.Cause]) when the timeout expires. The returned cancel
// function does not set the cause.
func (s *Service) WithTimeoutCause(parent context.Context, timeout time.Duration, cause error) (context.Context, context.CancelFunc) {
	now := s.Now()
	return s.withDeadline(parent, now, timeout, now.Add(timeout), cause, "WithTimeoutCause")
}

// WithDeadline is [context.WithDeadline] on a timer of this service: a context
// derived from parent that is done when the deadline d has passed, when the
// returned cancel function is called, or when parent is done, whichever comes
// first. If parent's deadline is earlier than d, and goes by the same clock, the
// result is that of [context.WithCancel]. The context may be the parent of contexts of package
// context and the other way round, in any order.
//
// It is for programs that make very many contexts with a timeout and cancel
// nearly all of them, and for timeouts below some milliseconds, which are as
// precise as a [Sleep]. To make and cancel a context takes about half of the time
// that it takes with package context, half of the allocations and half of the
// memory, however many others wait (go test -bench=Context$ in this package). The
// service's slack holds for the deadline: by default the context may be done a
// thousandth of the timeout later than it must be. It is never done earlier.
//
// Prefer package context where a program makes less than some thousands of
// contexts a second; and where each has a cancelable parent of its own, as in a
// server that makes one for each request, or is asked for Done or a child at once:
// then the gain is used up (go test -bench=ContextUse). What differs besides:
//
//   - Canceling a context of this package ends at once all that is derived from
//     it. But when a context that is not of this package is canceled, only the
//     methods of those of this package below it tell so at once. What is derived
//     from these with package context, and channels that Done has returned
//     before, follow when another goroutine has come to run. The documentation
//     of [context.Context] allows for that, and package context does so below
//     contexts of other packages.
//   - After [Service.Close], a deadline that has not passed never does. Cancel
//     functions and the cancellation of parents work as before.
//
// Inside a testing/synctest bubble the deadline is one of the bubble's clock.
//
// WithDeadline panics if parent is nil or the service is closed.
func (s *Service) WithDeadline(parent context.Context, d time.Time) (context.Context, context.CancelFunc) {
	now := s.Now()
	return s.withDeadline(parent, now, d.Sub(now), d, nil, "WithDeadline")
}

// WithDeadlineCause is WithDeadline, and also sets the cause of the returned
// context (see [context.Cause]) when the deadline passes. The returned cancel
// function does not set the cause.
func (s *Service) WithDeadlineCause(parent context.Context, d time.Time, cause error) (context.Context, context.CancelFunc) {
	now := s.Now()
	return s.withDeadline(parent, now, d.Sub(now), d, cause, "WithDeadlineCause")
}

// withDeadline makes a context for the method named op. Its deadline at lies
// dur after now.
func (s *Service) withDeadline(parent context.Context, now time.Time, dur time.Duration, at time.Time, cause error, op string) (context.Context, context.CancelFunc) {
	if parent == nil {
		panic("cannot create context from nil parent")
	}
	if s.e.group.Closed() {
		closedPanic(op)
	}
	own, done := ctxSource(parent)
	if cur, ok := parent.Deadline(); ok && cur.Before(at) && s.endsFirst(parent, cur) {
		return context.WithCancel(parent)
	}
	t := newContext(parent, at, own, done, cause)
	cancel := t.cancelByUser
	switch {
	case t.orphaned(own, done):
	case dur <= 0:
		t.cancel(ctxEnd{err: context.DeadlineExceeded, expired: true})
	default:
		// The timer first: it may expire before the context is linked to its
		// parent, which linking notices; the parent's cancellation stops it.
		bubbled := s.startContext(t, now, dur, op)
		switch {
		case own != nil:
			own.adopt(t)
		case done != nil:
			t.joinForeign(cancel, bubbled)
		}
	}
	return t, cancel
}

// endsFirst reports whether a parent's deadline is kept by a clock on which it cannot
// pass later than a later one of this service. That of a context of this package goes
// by its service's clock; package context counts monotonic time.
func (s *Service) endsFirst(parent context.Context, deadline time.Time) bool {
	own, _ := parent.Value(&deadlineCtxKey).(*deadlineCtx)
	if own == nil || own.deadline != deadline || own.timer == nil {
		return s.e.plain()
	}
	switch e := own.timer.svc.e; {
	case e == s.e:
		return true
	case e.group.Manual() || s.e.group.Manual():
		return false
	default:
		// The time that the system is suspended for only counts for the parent.
		return e.clock == s.e.clock || s.e.clock == Monotonic && e.clock == Boottime
	}
}

// startContext starts the timer of a context that nobody else knows yet, and
// returns whether that is in a synctest bubble.
func (s *Service) startContext(t *deadlineCtx, now time.Time, d time.Duration, op string) (inBubble bool) {
	st := shard.Timer{Kind: shard.Call, Target: (*ctxExpiry)(t)}
	ns, ours := int64(0), true
	switch {
	case !s.e.plain():
		ns, inBubble = s.e.group.Now()
		ours = !inBubble
		if s.e.group.Manual() {
			_, inBubble = rt.Now() // whose goroutines may use virtual time, too
		}
		s.scheduleAt(&st, s.timeOf(t.deadline), ns)
	case now == now.Round(0): // Only a time of a bubble's clock has no monotonic reading.
		inBubble, ours = true, false
	default:
		ns = rt.At(now)
		s.schedule(&st, d, ns)
	}
	if !ours {
		t.timer = &place{svc: s, bubble: newBubbled(s.e, nil, t.expire, d, 0)}
		return true
	}
	sh, h, ok := s.e.group.Start(&st, ns)
	if !ok {
		closedPanic(op)
	}
	t.timer, t.handle = &s.places[sh.Index], h
	return inBubble
}
