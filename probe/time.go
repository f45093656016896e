package probe

import (
	"context"
	"errors"
	"time"
)

// A run has a time that it does not exceed, however busy the machine is. Checks
// that measure say how long they take on an idle machine, their Budget; on a busy
// one each may take what the time leaves over when those after it have theirs. A
// check that has used that up is told so by its context, and says of what it did
// not get to: its result then has ErrNoTime.

// limit is how long a run takes at most. What comes after the last check, the
// report, has its part of what the effort promises.
func (e Effort) limit() time.Duration {
	switch e {
	case Quick:
		return 2700 * time.Millisecond
	case Thorough:
		return 10 * time.Minute
	}
	return 14 * time.Second
}

// ErrNoTime says that a check, or part of it, was not made: the machine was so busy
// that others took all of the run's time. It is matched by Result.Err.
var ErrNoTime = errors.New("the machine was so busy that the time did not suffice")

// allot is what the first of the checks may take of the time that is left: all but
// the budgets of the others, but no less than its own part of all the budgets.
func allot(checks []Check, e *Env, rest time.Duration) time.Duration {
	if rest <= 0 {
		return 0
	}
	all, own := left(checks, e), left(checks[:1], e)
	if own == 0 {
		return rest
	}
	return max(rest-(all-own), time.Duration(float64(rest)*float64(own)/float64(all)))
}

// runWithin makes the check. One that reads files only is made in any case: it takes
// next to nothing, and knows what explains the lack of time.
func (c Check) runWithin(ctx context.Context, e *Env, within time.Duration) Result {
	if c.Budget == nil || e.Own && clockStopped() != nil {
		return c.Run(ctx, e) // without a clock there is nothing to end it by, nor to measure
	}
	if within <= 0 {
		return Result{Err: ErrNoTime}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, within, ErrNoTime)
	defer cancel()
	return c.Run(ctx, e)
}

// ended returns nil while ctx lasts. After that, an error that matches that of ctx
// and its cause, and says the cause.
func ended(ctx context.Context) error {
	err := ctx.Err()
	if err == nil {
		return nil
	}
	return &endedError{err, context.Cause(ctx)}
}

type endedError struct{ err, cause error }

func (e *endedError) Error() string   { return e.cause.Error() }
func (e *endedError) Unwrap() []error { return []error{e.err, e.cause} }
