package engine

import (
	"context"
	"time"
)

// Engine is a timer service in package time's and package context's names.
// Its methods are safe for concurrent use, and behave as theirs do, except that
// AfterFunc panics at the call if f is nil.
type Engine interface {
	AfterFunc(d time.Duration, f func()) Timer
	NewTimer(d time.Duration) ChanTimer
	After(d time.Duration) <-chan time.Time
	Sleep(d time.Duration)
	NewTicker(d time.Duration) Ticker
	Tick(d time.Duration) <-chan time.Time
	WithTimeout(parent context.Context, d time.Duration) (context.Context, context.CancelFunc)

	// Counters returns what the engine has done so far, or false if it does
	// not count.
	Counters() (Counters, bool)

	// Close ends the engine: pending timers and tickers never fire, blocked
	// Sleeps return, and the engine's goroutines and threads end. Afterwards,
	// starting or resetting anything panics. A function that runs runs on. The
	// second Close is an error.
	Close() error
}

// Timer is a timer with a function.
type Timer interface {
	// Stop disarms the timer, and reports whether it was armed.
	Stop() bool

	// Reset arms the timer for d from now, and reports whether it was armed.
	Reset(d time.Duration) bool
}

// ChanTimer is a timer with a channel.
type ChanTimer interface {
	Timer
	C() <-chan time.Time
}

// Ticker is a ticker.
type Ticker interface {
	C() <-chan time.Time
	Stop()
	Reset(d time.Duration)
}
