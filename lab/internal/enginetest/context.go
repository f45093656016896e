package enginetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/detent-go/detent/internal/suite"
	"github.com/detent-go/detent/lab/engine"
)

// withTimeout tests contexts: they end by their deadline, by their parent or by
// their cancel function, and say so.
func withTimeout(t *testing.T, e engine.Engine) {
	background := context.Background()
	for _, d := range []time.Duration{-1, 0, 50 * time.Microsecond, 3 * time.Millisecond} {
		start := time.Now()
		ctx, cancel := e.WithTimeout(background, d)
		child, cancelChild := context.WithCancel(ctx)
		suite.Await(t, "a context ended by its deadline", child.Done())
		if passed := time.Since(start); passed < d {
			t.Errorf("WithTimeout(%v) ended after %v", d, passed)
		}
		if err := ctx.Err(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Err after the deadline = %v", err)
		}
		if err := context.Cause(child); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a child's Cause after the deadline = %v", err)
		}
		if at, ok := child.Deadline(); !ok || at.Before(start.Add(d)) {
			t.Errorf("Deadline = %v, %v", at, ok)
		}
		cancelChild()
		cancel()
	}

	ctx, cancel := e.WithTimeout(background, time.Hour)
	cancel()
	cancel()
	suite.Await(t, "a canceled context ended", ctx.Done())
	if err := ctx.Err(); !errors.Is(err, context.Canceled) {
		t.Errorf("Err after cancel = %v", err)
	}

	parent, cancelParent := context.WithCancel(background)
	ctx, cancel = e.WithTimeout(parent, time.Hour)
	defer cancel()
	if err := ctx.Err(); err != nil {
		t.Errorf("Err before anything = %v", err)
	}
	cancelParent()
	suite.Await(t, "a context ended with its parent", ctx.Done())
	if err := ctx.Err(); !errors.Is(err, context.Canceled) {
		t.Errorf("Err after the parent's cancel = %v", err)
	}

	soon, cancelSoon := e.WithTimeout(background, 2*time.Millisecond)
	defer cancelSoon()
	late, cancelLate := e.WithTimeout(soon, time.Hour)
	defer cancelLate()
	suite.Await(t, "a context ended by its parent's deadline", late.Done())
}
