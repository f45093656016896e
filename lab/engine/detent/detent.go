// Package detent is detent's package timer as an engine of the lab: a hierarchical
// wheel that does not tick, and a 4-ary heap, for each P; a timerfd in the Go
// netpoller for what is precise, a runtime timer for the rest. Its own page of
// design is the repository's docs/architecture.md.
package detent

import (
	"context"
	"time"

	"github.com/detent-go/detent/lab/engine"
	"github.com/detent-go/detent/timer"
)

// service is a service of package timer. That has the same methods, but for the
// types that they return.
type service struct{ s *timer.Service }

// New returns a service with the given options; nil stands for the defaults. The
// only errors are those of options out of range.
func New(o *timer.Options) (engine.Engine, error) {
	s, err := timer.New(o)
	if err != nil {
		return nil, err
	}
	return service{s}, nil
}

func (e service) AfterFunc(d time.Duration, f func()) engine.Timer { return e.s.AfterFunc(d, f) }
func (e service) NewTimer(d time.Duration) engine.ChanTimer        { return Timer{e.s.NewTimer(d)} }
func (e service) After(d time.Duration) <-chan time.Time           { return e.s.After(d) }
func (e service) Sleep(d time.Duration)                            { e.s.Sleep(d) }
func (e service) NewTicker(d time.Duration) engine.Ticker          { return Ticker{e.s.NewTicker(d)} }
func (e service) Tick(d time.Duration) <-chan time.Time            { return e.s.Tick(d) }
func (e service) Close() error                                     { return e.s.Close() }

func (e service) WithTimeout(parent context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return e.s.WithTimeout(parent, d)
}

func (e service) Counters() (engine.Counters, bool) {
	s := e.s.Stats()
	return engine.Counters{Pending: s.Pending, Fired: s.Fired, Wakeups: s.Wakeups}, true
}

// Timer is a timer of package timer.
type Timer struct{ *timer.Timer }

// C returns the timer's channel.
func (t Timer) C() <-chan time.Time { return t.Timer.C }

// Ticker is a ticker of package timer.
type Ticker struct{ *timer.Ticker }

// C returns the ticker's channel.
func (t Ticker) C() <-chan time.Time { return t.Ticker.C }

// Info describes the engine, with the default options but for the number of
// shards.
func Info() engine.Info {
	return engine.Info{
		Name:    "detent",
		Summary: "detent's package timer: a tickless wheel and a heap for each P, a timerfd, a runtime timer",
		Lacks: map[engine.Capability]string{
			engine.SyncChannels: "C has a buffer of one, which Stop and Reset empty",
			engine.Dropped:      "not in a portable build; in the others a dropped ticker is collected",
		},
		New: func(procs int) (engine.Engine, error) { return New(&timer.Options{Shards: procs}) },
	}
}

// LaneInfo describes a lane of package timer: one thread of its own, which waits and
// calls the functions itself, whatever the number of Ps.
func LaneInfo() engine.Info {
	i := Info()
	i.Name, i.Summary = "lane", "a lane of detent's package timer: one thread of its own that waits and calls the functions"
	i.New = func(int) (engine.Engine, error) {
		s, err := timer.NewLane(nil)
		if err != nil {
			return nil, err
		}
		return service{s}, nil
	}
	return i
}
