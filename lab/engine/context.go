package engine

import (
	"context"
	"time"
)

// deadlineCtx is a context that an engine's timer cancels. Package context does
// the rest: children, causes, Done. That leaves one difference: the Err of a
// child is Canceled where package context's would be DeadlineExceeded; its Cause
// is right.
type deadlineCtx struct {
	context.Context
	deadline time.Time
}

func (c *deadlineCtx) Deadline() (time.Time, bool) { return c.deadline, true }

func (c *deadlineCtx) Err() error {
	err := c.Context.Err()
	if err != nil && context.Cause(c.Context) == context.DeadlineExceeded {
		return context.DeadlineExceeded
	}
	return err
}

func withTimeout(e Engine, parent context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	deadline := time.Now().Add(d)
	if at, ok := parent.Deadline(); ok && at.Before(deadline) {
		return context.WithCancel(parent) // the parent's comes first
	}
	ctx, cancel := context.WithCancelCause(parent)
	if d <= 0 {
		cancel(context.DeadlineExceeded)
		return &deadlineCtx{ctx, deadline}, func() {}
	}
	t := e.AfterFunc(d, func() { cancel(context.DeadlineExceeded) })
	return &deadlineCtx{ctx, deadline}, func() {
		t.Stop()
		cancel(nil)
	}
}
