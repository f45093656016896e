package timer

import (
	"context"
	"time"
)

// AfterFunc is [Service.AfterFunc] of the default service.
func AfterFunc(d time.Duration, f func()) *Timer { return std().AfterFunc(d, f) }

// AfterFuncAt is [Service.AfterFuncAt] of the default service.
func AfterFuncAt(at time.Time, f func()) *Timer { return std().AfterFuncAt(at, f) }

// NewTimer is [Service.NewTimer] of the default service.
func NewTimer(d time.Duration) *Timer { return std().NewTimer(d) }

// NewTimerAt is [Service.NewTimerAt] of the default service.
func NewTimerAt(at time.Time) *Timer { return std().NewTimerAt(at) }

// After is [Service.After] of the default service.
func After(d time.Duration) <-chan time.Time { return std().After(d) }

// Sleep is [Service.Sleep] of the default service.
func Sleep(d time.Duration) { std().Sleep(d) }

// SleepUntil is [Service.SleepUntil] of the default service.
func SleepUntil(t time.Time) { std().SleepUntil(t) }

// SleepContext is [Service.SleepContext] of the default service.
func SleepContext(ctx context.Context, d time.Duration) error { return std().SleepContext(ctx, d) }

// SleepUntilContext is [Service.SleepUntilContext] of the default service.
func SleepUntilContext(ctx context.Context, t time.Time) error {
	return std().SleepUntilContext(ctx, t)
}

// NewTicker is [Service.NewTicker] of the default service.
func NewTicker(d time.Duration) *Ticker { return std().NewTicker(d) }

// Tick is [Service.Tick] of the default service.
func Tick(d time.Duration) <-chan time.Time { return std().Tick(d) }

// NewInterval is [Service.NewInterval] of the default service.
func NewInterval(d time.Duration, o *TickOptions) *Interval { return std().NewInterval(d, o) }

// TickFunc is [Service.TickFunc] of the default service.
func TickFunc(d time.Duration, f func(Ticked), o *TickOptions) *Interval {
	return std().TickFunc(d, f, o)
}
