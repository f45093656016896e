// Package std is package time as an engine of the lab: the timers of the Go that
// the program is built with.
//
// Since Go 1.23 those are a 4-ary heap for each P, as in Go 1.14, but with a lock
// in each timer instead of a state machine of compare-and-swaps. Stop and Reset
// only mark the timer, and the heap's owner corrects it later. Channels have no
// buffer, and their timers are in no heap while nobody receives. A timer that
// nobody refers to is collected.
//
// It counts nothing, and Close ends nothing.
package std

import (
	"context"
	"time"

	"github.com/detent-go/detent/lab/engine"
)

type std struct{}

// New returns package time.
func New() engine.Engine { return std{} }

func (std) AfterFunc(d time.Duration, f func()) engine.Timer { return time.AfterFunc(d, f) }
func (std) NewTimer(d time.Duration) engine.ChanTimer        { return Timer{time.NewTimer(d)} }
func (std) After(d time.Duration) <-chan time.Time           { return time.After(d) }
func (std) Sleep(d time.Duration)                            { time.Sleep(d) }
func (std) NewTicker(d time.Duration) engine.Ticker          { return Ticker{time.NewTicker(d)} }
func (std) Tick(d time.Duration) <-chan time.Time            { return time.Tick(d) }
func (std) Counters() (engine.Counters, bool)                { return engine.Counters{}, false }
func (std) Close() error                                     { return nil }

func (std) WithTimeout(parent context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(parent, d)
}

// Timer is a timer of package time.
type Timer struct{ *time.Timer }

// C returns the timer's channel.
func (t Timer) C() <-chan time.Time { return t.Timer.C }

// Ticker is a ticker of package time.
type Ticker struct{ *time.Ticker }

// C returns the ticker's channel.
func (t Ticker) C() <-chan time.Time { return t.Ticker.C }

// Info describes the engine.
func Info() engine.Info {
	return engine.Info{
		Name:    "std",
		Summary: "package time: a 4-ary heap for each P, a lock in each timer, the netpoller",
		Years:   "since 2024",
		Go:      "1.23-1.26",
		Lacks: map[engine.Capability]string{
			engine.NilPanics:    "the nil function is called when the timer fires, which ends the program",
			engine.BoundedStorm: "each function gets a goroutine when it is due",
			engine.ExactResults: "once in ten thousand times Stop or Reset returns true and another goroutine receives the value (Go 1.26)",
			engine.Counted:      "package time has no counters",
			engine.Closes:       "package time is there as long as the program",
		},
		New: func(int) (engine.Engine, error) { return New(), nil },
	}
}
