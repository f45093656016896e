package heap1

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/detent-go/detent/lab/engine"
	"github.com/detent-go/detent/lab/internal/ksleep"
)

type timers struct {
	calls ksleep.Calls
	proc  sync.WaitGroup // the timer goroutine

	mu       sync.Mutex
	heap     heap
	closed   bool
	created  bool          // the timer goroutine runs
	sleeping bool          // it sleeps in note
	parked   bool          // it waits for ready, because there is no timer
	note     ksleep.Note   // ends its sleep
	ready    chan struct{} // ends its wait; has room for one

	fired, wakeups uint64

	asleep atomic.Int32 // threads in the kernel
}

// New returns the engine, or an error where there is no futex(2).
func New() (engine.Core, error) {
	if err := ksleep.Available(); err != nil {
		return nil, fmt.Errorf("lab: heap1: %w", err)
	}
	ts := &timers{ready: make(chan struct{}, 1)}
	ts.note.Calls = &ts.calls
	return ts, nil
}

// node is one timer.
type node struct {
	ts  *timers
	f   engine.Func // nil for a goroutine
	arg any

	// These are protected by ts.mu.
	when   int64
	period int64
	seq    uintptr
	at     int // index in the heap, -1 if not armed
}

func (ts *timers) Start(d, period time.Duration, f engine.Func, arg any, seq uintptr) engine.Node {
	n := &node{ts: ts, f: f, arg: arg, at: -1}
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
		panic("lab: heap1: timer started after Close")
	}
	n.when, n.period, n.seq = when, int64(period), seq
	ts.heap.push(n)
	if n.at == 0 {
		// The first of all: the timer goroutine has to know.
		switch {
		case ts.sleeping:
			// Also where it would wake up before that: see package buckets64.
			ts.sleeping = false
			ts.note.Wakeup()
		case ts.parked:
			ts.parked = false
			ts.ready <- struct{}{}
		case !ts.created:
			ts.created = true
			ts.proc.Go(ts.timerproc)
		}
	}
}

func (n *node) Stop() bool {
	ts := n.ts
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if n.at < 0 {
		return false
	}
	// If it was the first, timerproc wakes for nothing: cheaper than to wake it
	// now in order to tell it to sleep on.
	ts.heap.remove(n.at)
	return true
}

func (n *node) Reset(d time.Duration) bool { return n.Rearm(d, 0, 0) }

// Rearm is the removal and the start of the runtime's timers before Go 1.14 in
// one hold of the lock, lest two goroutines that reset one timer start it twice.
func (n *node) Rearm(d, period time.Duration, seq uintptr) bool {
	ts, when := n.ts, engine.Deadline(d)
	ts.mu.Lock()
	armed := n.at >= 0
	if armed {
		ts.heap.remove(n.at)
	}
	ts.armLocked(n, when, period, seq)
	ts.mu.Unlock()
	return armed
}

// timerproc is the timer goroutine.
func (ts *timers) timerproc() {
	ts.mu.Lock()
	for !ts.closed {
		ts.sleeping = false
		ts.wakeups++
		wait := ts.fireLocked(engine.Now())
		if ts.closed {
			break
		}
		if wait < 0 {
			ts.parked = true
			ts.mu.Unlock()
			<-ts.ready
		} else {
			ts.sleeping = true
			ts.note.Clear()
			ts.mu.Unlock()
			ts.asleep.Add(1)
			ts.note.Sleep(time.Duration(wait))
			ts.asleep.Add(-1)
		}
		ts.mu.Lock()
	}
	ts.mu.Unlock()
}

// fireLocked fires what is due at now, and returns how long it is until the next
// timer is, or -1 if there is none. It gives up mu during each call.
func (ts *timers) fireLocked(now int64) (wait int64) {
	for len(ts.heap) > 0 && !ts.closed {
		n := ts.heap[0]
		if n.when > now {
			return n.when - now
		}
		if n.period > 0 {
			n.when = engine.NextPeriod(n.when, n.period, now)
			ts.heap.down(0)
		} else {
			ts.heap.remove(0)
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
	return -1
}

func (ts *timers) Counters() engine.Counters {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return engine.Counters{
		Pending: uint64(len(ts.heap)), Fired: ts.fired, Wakeups: ts.wakeups,
		FutexWaits: ts.calls.Waits.Load(), FutexWakes: ts.calls.Wakes.Load(),
		Threads: int(ts.asleep.Load()),
	}
}

func (ts *timers) Close() {
	ts.mu.Lock()
	ts.closed = true
	for _, n := range ts.heap {
		n.at = -1
	}
	ts.heap = nil
	switch {
	case ts.sleeping:
		ts.sleeping = false
		ts.note.Wakeup()
	case ts.parked:
		ts.parked = false
		ts.ready <- struct{}{}
	}
	ts.mu.Unlock()
	ts.proc.Wait()
}

// Info describes the engine.
func Info() engine.Info {
	return engine.Info{
		Name:    "heap1",
		Summary: "one heap and one lock for all Ps; one goroutine asleep in a futex",
		Years:   "2012-2018",
		Go:      "1.0-1.9",
		Lacks:   engine.LacksOver(nil),
		New: func(int) (engine.Engine, error) {
			c, err := New()
			if err != nil {
				return nil, err
			}
			return engine.Over("heap1", c), nil
		},
	}
}
