package netpoll114

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/detent-go/detent/lab/engine"
	"github.com/detent-go/detent/lab/internal/affinity"
	"github.com/detent-go/detent/lab/internal/ksleep"
)

// Engine is a scheduler with its timers.
type Engine struct {
	procs    []*proc
	affinity *affinity.Affinity
	pick     func() *timers // the heap of the caller's P
	sys      system
	kernel   *kernel // sys, if it is the real one

	// lastpoll is when a thread last came back from the netpoller, and 0 while one
	// is there. pollUntil is when that one will come back at the latest, or 0 if
	// it has not said so yet.
	lastpoll  atomic.Int64
	pollUntil atomic.Int64

	nspinning atomic.Int32 // threads that look for work
	nidle     atomic.Int32 // of idleProcs
	nglobal   atomic.Int32 // of global
	closing   atomic.Bool

	monitor     atomic.Int32
	monitorNote note

	mu          sync.Mutex
	idleProcs   []*proc
	idleThreads []*thread
	global      []*task       // what no P's own queue holds
	stopped     chan struct{} // closed when all P's are idle for good

	threads atomic.Int32

	unread atomic.Int64 // breaks that no wait has taken note of yet

	wakeups, epolls, epollSleeps, breaks, nanosleeps, steals atomic.Uint64
}

// New returns the engine with that many P's, or with GOMAXPROCS if procs is 0. It
// starts no thread before the first timer. It returns an error where there is no
// futex(2) and epoll(7), or no file to be had, and if procs is negative.
func New(procs int) (*Engine, error) {
	if err := ksleep.Available(); err != nil {
		return nil, fmt.Errorf("lab: netpoll114: %w", err)
	}
	if procs < 0 {
		return nil, fmt.Errorf("lab: netpoll114: %d P's", procs)
	}
	if procs == 0 {
		procs = runtime.GOMAXPROCS(0)
	}
	k := new(kernel)
	if err := k.open(); err != nil {
		return nil, fmt.Errorf("lab: netpoll114: %w", err)
	}
	e := newEngine(procs, k)
	e.kernel = k
	return e, nil
}

func newEngine(procs int, sys system) *Engine {
	e := &Engine{affinity: affinity.New(procs), sys: sys, stopped: make(chan struct{})}
	e.pick = e.own
	e.monitorNote = sys.newNote()
	e.lastpoll.Store(max(engine.Now(), 1))
	for range procs {
		p := new(proc)
		p.timers.owner = p
		p.spawn = func(t task) { e.put(p, &t) }
		e.procs = append(e.procs, p)
	}
	e.idleProcs = append(e.idleProcs, e.procs...)
	e.nidle.Store(int32(procs))
	return e
}

func (e *Engine) own() *timers { return &e.procs[e.affinity.Get()].timers }

// Go runs f as a task, on one of the engine's threads. f may block, but it takes a
// thread with it; that is what sysmon is for.
func (e *Engine) Go(f func()) {
	if e.closing.Load() {
		panic("lab: netpoll114: Go called after Close")
	}
	e.startMonitor()
	t := task(f)
	e.putGlobal(&t)
	e.wakep()
}

// Counters returns what the engine has done.
func (e *Engine) Counters() engine.Counters {
	c := engine.Counters{
		Wakeups:    e.wakeups.Load(),
		FutexWaits: e.kernel.calls.Waits.Load(), FutexWakes: e.kernel.calls.Wakes.Load(),
		EpollWaits: e.epolls.Load(), EpollSleeps: e.epollSleeps.Load(), Breaks: e.breaks.Load(),
		Nanosleeps: e.nanosleeps.Load(),
		Steals:     e.steals.Load(),
		Threads:    int(e.threads.Load()),
	}
	for _, p := range e.procs {
		ts := &p.timers
		ts.mu.Lock()
		c.Pending += uint64(max(0, len(ts.heap)-int(ts.deleted.Load())))
		c.Fired += ts.fired
		ts.mu.Unlock()
	}
	return c
}

// Close stops the world: it takes every P that is idle or in a task, and waits for
// the threads that have the others to give them up, which they do in their next
// round. A thread in a task ends after that.
func (e *Engine) Close() {
	e.mu.Lock()
	e.closing.Store(true)
	idleThreads := e.idleThreads
	e.idleThreads = nil
	all := len(e.idleProcs) == len(e.procs)
	e.mu.Unlock()

	if all {
		close(e.stopped)
	}
	for _, m := range idleThreads {
		m.park.Wakeup() // with nothing in next
	}
	for _, p := range e.procs {
		if word := p.word.Load(); word&isWhat == inTask && p.leaveTask(word, inUse) {
			e.putIdle(p)
		}
	}
	e.netpollBreak()
	if !e.monitor.CompareAndSwap(monitorNone, monitorAwake) {
		e.wakeMonitor()
	}
	<-e.stopped

	for _, p := range e.procs {
		p.timers.close()
	}
	e.mu.Lock()
	e.global = nil
	e.mu.Unlock()
	e.sys.release()
}

// Info describes the engine.
func Info() engine.Info {
	return engine.Info{
		Name:    "netpoll114",
		Summary: "a 4-ary heap for each P and lazy deletion; a scheduler that looks after timers, asleep in epoll",
		Years:   "2020-2024",
		Go:      "1.14-1.22",
		Lacks: engine.LacksOver(map[engine.Capability]string{
			engine.BoundedStorm: "each function that blocks takes a thread, where in Go 1.14 each function got a goroutine",
		}),
		New: func(procs int) (engine.Engine, error) {
			e, err := New(procs)
			if err != nil {
				return nil, err
			}
			return engine.Over("netpoll114", e), nil
		},
	}
}
