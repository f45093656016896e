package wheel

import (
	"fmt"
	"sync"
	"time"

	"github.com/detent-go/detent/lab/engine"
)

// Tick is the tick of the wheel unless another is asked for.
const Tick = time.Millisecond

type timers struct {
	tick int64 // in nanoseconds
	quit chan struct{}
	proc sync.WaitGroup // the goroutine that turns

	mu      sync.Mutex
	wheel   wheel
	closed  bool
	created bool // the goroutine that turns runs

	fired, wakeups uint64
}

// New returns the engine with the given tick, or with [Tick] if it is 0. The
// goroutine that turns the wheel is started with the first timer, and runs until
// Close. The only error is that of a negative tick.
func New(tick time.Duration) (engine.Core, error) {
	if tick < 0 {
		return nil, fmt.Errorf("lab: wheel: the tick is %v, want more than 0", tick)
	}
	if tick == 0 {
		tick = Tick
	}
	ts := &timers{tick: int64(tick), quit: make(chan struct{})}
	ts.wheel.init(engine.Now()/ts.tick + 1)
	return ts, nil
}

// node is one timer.
type node struct {
	ts  *timers
	f   engine.Func // nil for a goroutine
	arg any

	// These are protected by ts.mu.
	next, prev *node // in its slot; nil if not armed
	tick       int64 // at which it fires: the first at or after when
	when       int64
	period     int64
	seq        uintptr
}

func (ts *timers) Start(d, period time.Duration, f engine.Func, arg any, seq uintptr) engine.Node {
	n := &node{ts: ts, f: f, arg: arg}
	when := engine.Deadline(d)
	ts.mu.Lock()
	ts.armLocked(n, when, period, seq)
	ts.mu.Unlock()
	return n
}

// armLocked arms a node that is not armed.
func (ts *timers) armLocked(n *node, when int64, period time.Duration, seq uintptr) {
	if ts.closed {
		ts.mu.Unlock()
		panic("lab: wheel: timer started after Close")
	}
	n.period, n.seq = int64(period), seq
	ts.fileLocked(n, when)
	if !ts.created {
		ts.created = true
		ts.proc.Go(ts.turn)
	}
}

func (ts *timers) fileLocked(n *node, when int64) {
	n.when = when
	n.tick = (when-1)/ts.tick + 1
	ts.wheel.file(n)
}

func (n *node) Stop() bool {
	n.ts.mu.Lock()
	defer n.ts.mu.Unlock()
	return n.disarmLocked()
}

func (n *node) disarmLocked() bool {
	if !n.linked() {
		return false
	}
	n.ts.wheel.remove(n)
	return true
}

func (n *node) Reset(d time.Duration) bool { return n.Rearm(d, 0, 0) }

func (n *node) Rearm(d, period time.Duration, seq uintptr) bool {
	when := engine.Deadline(d)
	n.ts.mu.Lock()
	armed := n.disarmLocked()
	n.ts.armLocked(n, when, period, seq)
	n.ts.mu.Unlock()
	return armed
}

// turn turns the wheel with the clock, until Close.
func (ts *timers) turn() {
	t := time.NewTicker(time.Duration(ts.tick))
	defer t.Stop()
	for {
		select {
		case <-t.C:
		case <-ts.quit:
			return
		}
		ts.mu.Lock()
		ts.wakeups++
		// Ticks that went by while this goroutine waited are made up for.
		for now := engine.Now(); ts.wheel.cur <= now/ts.tick && !ts.closed; {
			var due list
			ts.wheel.turn(&due)
			ts.fireLocked(&due, now)
		}
		ts.mu.Unlock()
	}
}

// fireLocked fires a list of timers that are due. It gives up mu during each call.
func (ts *timers) fireLocked(due *list, now int64) {
	for n := due.first(); n != nil; n = due.first() {
		ts.wheel.remove(n)
		if ts.closed {
			continue
		}
		if n.period > 0 {
			ts.fileLocked(n, engine.NextPeriod(n.when, n.period, now))
		}
		ts.fired++
		f, arg, seq := n.f, n.arg, n.seq
		ts.mu.Unlock()
		if f == nil {
			go arg.(func())()
		} else {
			f(arg, seq)
		}
		ts.mu.Lock()
	}
}

func (ts *timers) Counters() engine.Counters {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return engine.Counters{Pending: uint64(ts.wheel.n), Fired: ts.fired, Wakeups: ts.wakeups}
}

func (ts *timers) Close() {
	ts.mu.Lock()
	ts.closed = true
	ts.wheel.clear()
	ts.mu.Unlock()
	close(ts.quit)
	ts.proc.Wait()
}

// Info describes the engine, with the default tick.
func Info() engine.Info {
	return engine.Info{
		Name:    "wheel",
		Summary: "five rings of slots behind one lock, turned once a millisecond",
		Grain:   Tick,
		Lacks:   engine.LacksOver(nil),
		New: func(int) (engine.Engine, error) {
			c, err := New(Tick)
			if err != nil {
				return nil, err
			}
			return engine.Over("wheel", c), nil
		},
	}
}
