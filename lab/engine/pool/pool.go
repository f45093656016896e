package pool

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/detent-go/detent/lab/engine"
	"github.com/detent-go/detent/lab/internal/affinity"
	"github.com/detent-go/detent/lab/internal/ksleep"
	"github.com/detent-go/detent/lab/internal/osthread"
)

// Options are the settings of the engine. The zero value holds the defaults.
type Options struct {
	// Pools is the number of pools. The default, 0, is GOMAXPROCS; 1 puts all
	// timers behind one lock.
	Pools int

	// Spin is how long before each deadline a thread stops sleeping and reads the
	// clock in a loop. The default, 0, is not at all.
	Spin time.Duration
}

type timers struct {
	p     *affinity.Affinity
	pools []pool
}

// pool is a heap with its lock and its thread.
type pool struct {
	spin int64 // in nanoseconds

	mu       sync.Mutex
	heap     heap
	closed   bool
	created  bool        // the thread runs
	sleeping bool        // it sleeps in note
	until    int64       // when it will wake, if sleeping
	note     ksleep.Note // ends its sleep

	fired, wakeups uint64

	calls   ksleep.Calls
	threads atomic.Int32   // 0 or 1
	proc    sync.WaitGroup // the thread's goroutine

	_ [64]byte // the next pool's lock is in another cache line
}

// New returns the engine. The threads are started when they are first needed. The
// errors are those of options out of range, and of systems without futex(2).
func New(o Options) (engine.Core, error) {
	if err := ksleep.Available(); err != nil {
		return nil, fmt.Errorf("lab: pool: %w", err)
	}
	if o.Pools < 0 || o.Spin < 0 {
		return nil, fmt.Errorf("lab: pool: %d pools that spin for %v, want neither negative", o.Pools, o.Spin)
	}
	if o.Pools == 0 {
		o.Pools = runtime.GOMAXPROCS(0)
	}
	ts := &timers{p: affinity.New(o.Pools), pools: make([]pool, o.Pools)}
	for i := range ts.pools {
		p := &ts.pools[i]
		p.spin = int64(o.Spin)
		p.note.Calls = &p.calls
	}
	return ts, nil
}

// own returns the pool of the caller's P.
func (ts *timers) own() *pool { return &ts.pools[ts.p.Get()] }

// armLocked arms a node that is not armed.
func (p *pool) armLocked(n *node, when int64, period time.Duration, seq uintptr) {
	if p.closed {
		p.mu.Unlock()
		panic("lab: pool: timer started after Close")
	}
	n.when, n.period, n.seq = when, int64(period), seq
	p.heap.push(n)
	switch {
	case n.at != 0:
	case p.sleeping && p.until > when-p.spin:
		p.sleeping = false
		p.note.Wakeup()
	case !p.created:
		p.created = true
		p.threads.Add(1)
		p.proc.Add(1)
		osthread.Go("lab-pool", p.run)
	}
}

// run is the thread of a pool.
func (p *pool) run() {
	defer p.proc.Done()
	defer p.threads.Add(-1)
	osthread.LeastSlack()
	p.mu.Lock()
	for !p.closed {
		p.sleeping = false
		p.wakeups++
		p.fireLocked()
		if p.closed {
			break
		}
		wait := int64(-1)
		if len(p.heap) > 0 {
			if wait = p.heap[0].when - p.spin - engine.Now(); wait <= 0 {
				continue
			}
			p.until = p.heap[0].when - p.spin
		} else {
			p.until = engine.Infinite
		}
		p.sleeping = true
		p.note.Clear()
		p.mu.Unlock()
		p.note.Sleep(time.Duration(wait))
		p.mu.Lock()
	}
	p.mu.Unlock()
}

// fireLocked fires what is due, and what is going to be within the time to spin. It
// gives up mu during each call, and while it spins.
func (p *pool) fireLocked() {
	for len(p.heap) > 0 && !p.closed {
		n := p.heap[0]
		now := engine.Now()
		if now < n.when {
			if now < n.when-p.spin {
				return
			}
			p.mu.Unlock() // an earlier timer may come in between
			p.mu.Lock()
			continue
		}
		if n.period > 0 {
			n.when = engine.NextPeriod(n.when, n.period, now)
			p.heap.down(0)
		} else {
			p.heap.remove(0)
		}
		p.fired++
		f, arg, seq := n.f, n.arg, n.seq
		p.mu.Unlock()
		if f == nil {
			go arg.(func())()
		} else {
			f(arg, seq)
		}
		p.mu.Lock()
	}
}

func (ts *timers) Counters() engine.Counters {
	var c engine.Counters
	for i := range ts.pools {
		p := &ts.pools[i]
		p.mu.Lock()
		c.Pending += uint64(len(p.heap))
		c.Fired += p.fired
		c.Wakeups += p.wakeups
		p.mu.Unlock()
		c.FutexWaits += p.calls.Waits.Load()
		c.FutexWakes += p.calls.Wakes.Load()
		c.Threads += int(p.threads.Load())
	}
	return c
}

func (ts *timers) Close() {
	for i := range ts.pools {
		ts.pools[i].close()
	}
}

func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	for _, n := range p.heap {
		n.at = -1
	}
	p.heap = nil
	if p.sleeping {
		p.sleeping = false
		p.note.Wakeup()
	}
	p.mu.Unlock()
	p.proc.Wait()
}

// Info describes the engine, with a pool for each P.
func Info() engine.Info {
	return engine.Info{
		Name:    "pool",
		Summary: "a heap and a thread asleep in a futex for each P, outside the runtime",
		Lacks:   engine.LacksOver(nil),
		New:     func(procs int) (engine.Engine, error) { return open(Options{Pools: procs}) },
	}
}

// OneInfo describes the engine with one pool: the global lock that the article
// compares with.
func OneInfo() engine.Info {
	i := Info()
	i.Name = "pool1"
	i.Summary = "a heap and a thread asleep in a futex behind one lock, outside the runtime"
	i.New = func(int) (engine.Engine, error) { return open(Options{Pools: 1}) }
	return i
}

func open(o Options) (engine.Engine, error) {
	c, err := New(o)
	if err != nil {
		return nil, err
	}
	return engine.Over("pool", c), nil
}
