package engine

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Over returns package time's face over a core. name is how errors call it.
func Over(name string, c Core) Engine {
	return &face{core: c, name: name, done: make(chan struct{})}
}

type face struct {
	core     Core
	name     string
	sleepers sync.Pool // of *sleeper
	closed   atomic.Bool
	done     chan struct{} // closed by Close
}

func (e *face) AfterFunc(d time.Duration, f func()) Timer {
	if f == nil {
		panic("lab: AfterFunc called with a nil function")
	}
	// A func in an interface is the pointer that it is anyway: nothing is
	// allocated but the core's node.
	return e.core.Start(d, 0, nil, f, 0)
}

func (e *face) NewTimer(d time.Duration) ChanTimer { return e.newTimer(d) }

func (e *face) After(d time.Duration) <-chan time.Time { return e.newTimer(d).c }

func (e *face) newTimer(d time.Duration) *TimerOver {
	t := &TimerOver{c: make(chan time.Time, 1), armed: true}
	t.node = e.core.Start(d, 0, sendTime, t, 0)
	return t
}

func (e *face) NewTicker(d time.Duration) Ticker {
	if d <= 0 {
		panic("non-positive interval for NewTicker")
	}
	return e.newTicker(d)
}

func (e *face) Tick(d time.Duration) <-chan time.Time {
	if d <= 0 {
		return nil
	}
	return e.newTicker(d).c
}

func (e *face) newTicker(d time.Duration) *TickerOver {
	t := &TickerOver{c: make(chan time.Time, 1), armed: true}
	t.node = e.core.Start(d, d, sendTick, t, 0)
	return t
}

// sleeper is what a goroutine sleeps on. It is used again, as the runtime keeps
// one timer for each goroutine's sleeps.
type sleeper struct {
	node Node
	c    chan struct{}
}

func (e *face) Sleep(d time.Duration) {
	if d <= 0 {
		return
	}
	s, _ := e.sleepers.Get().(*sleeper)
	if s == nil {
		s = &sleeper{c: make(chan struct{}, 1)}
		s.node = e.core.Start(d, 0, endSleep, s, 0)
	} else {
		s.node.Rearm(d, 0, 0)
	}
	select {
	case <-s.c:
		e.sleepers.Put(s)
	case <-e.done:
	}
}

// endSleep never blocks: a sleeper is armed once for each value received.
func endSleep(arg any, _ uintptr) { arg.(*sleeper).c <- struct{}{} }

func (e *face) WithTimeout(parent context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return withTimeout(e, parent, d)
}

func (e *face) Counters() (Counters, bool) { return e.core.Counters(), true }

func (e *face) Close() error {
	if e.closed.Swap(true) {
		return fmt.Errorf("lab: %s: already closed", e.name)
	}
	e.core.Close()
	close(e.done)
	return nil
}
