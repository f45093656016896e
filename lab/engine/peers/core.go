package peers

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/detent-go/detent/lab/engine"
)

// library is what all of them have.
type library interface {
	// afterFunc calls f in a goroutine of its own after d, and returns how to stop
	// that. The result of stop says whether it was in time, as far as the library
	// knows.
	afterFunc(d time.Duration, f func()) (stop func() bool)

	// close ends the library's goroutines.
	close()
}

// core makes a Core of a library. A Reset is a stop and a new timer; so is each
// period of a ticker.
type core struct {
	name   string
	lib    library
	closed atomic.Bool
}

type node struct {
	c   *core
	f   engine.Func
	arg any

	mu   sync.Mutex
	stop func() bool // of the present timer
}

func (c *core) Start(d, period time.Duration, f engine.Func, arg any, seq uintptr) engine.Node {
	n := &node{c: c, f: f, arg: arg}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.armLocked(d, period, seq)
	return n
}

// armLocked starts a timer.
func (n *node) armLocked(d, period time.Duration, seq uintptr) {
	if n.c.closed.Load() {
		panic("lab: " + n.c.name + ": timer started after Close")
	}
	switch {
	case n.f == nil:
		n.stop = n.c.lib.afterFunc(d, n.arg.(func()))
	case period == 0:
		n.stop = n.c.lib.afterFunc(d, func() { n.f(n.arg, seq) })
	default:
		t := &tick{n: n, period: int64(period), seq: seq, when: engine.Deadline(d)}
		n.stop = t.stop
		t.mu.Lock()
		t.next = n.c.lib.afterFunc(d, t.fire)
		t.mu.Unlock()
	}
}

func (n *node) Stop() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.stopLocked()
}

func (n *node) stopLocked() bool { return !n.c.closed.Load() && n.stop() }

func (n *node) Reset(d time.Duration) bool { return n.Rearm(d, 0, 0) }

func (n *node) Rearm(d, period time.Duration, seq uintptr) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	armed := n.stopLocked()
	n.armLocked(d, period, seq)
	return armed
}

// tick is a ticker: a timer that starts the next one.
type tick struct {
	n      *node
	period int64
	seq    uintptr

	mu      sync.Mutex
	when    int64
	next    func() bool // stops the timer that is pending
	stopped bool
}

func (t *tick) fire() {
	t.mu.Lock()
	if t.stopped || t.n.c.closed.Load() {
		t.mu.Unlock()
		return
	}
	now := engine.Now()
	t.when = engine.NextPeriod(t.when, t.period, max(now, t.when))
	t.next = t.n.c.lib.afterFunc(time.Duration(t.when-now), t.fire)
	t.mu.Unlock()
	t.n.f(t.n.arg, t.seq)
}

func (t *tick) stop() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	was := !t.stopped
	t.stopped = true
	t.next()
	return was
}

func (c *core) Counters() engine.Counters { return engine.Counters{} }

func (c *core) Close() {
	c.closed.Store(true)
	c.lib.close()
}

// uncounted is an engine that counts nothing.
type uncounted struct{ engine.Engine }

func (uncounted) Counters() (engine.Counters, bool) { return engine.Counters{}, false }

func over(name string, lib library) engine.Engine {
	return uncounted{engine.Over(name, &core{name: name, lib: lib})}
}
