package pool

import (
	"sync"
	"time"

	"github.com/detent-go/detent/lab/engine"
)

// node is one timer.
type node struct {
	ts  *timers
	f   engine.Func // nil for a goroutine
	arg any

	mu   sync.Mutex
	pool *pool // where it is armed, or was last

	// These are protected by the pool's mu.
	when   int64
	period int64
	seq    uintptr
	at     int // index in the heap, -1 if not armed
}

func (ts *timers) Start(d, period time.Duration, f engine.Func, arg any, seq uintptr) engine.Node {
	p := ts.own()
	n := &node{ts: ts, f: f, arg: arg, pool: p, at: -1}
	when := engine.Deadline(d)
	p.mu.Lock()
	p.armLocked(n, when, period, seq)
	p.mu.Unlock()
	return n
}

func (n *node) Stop() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.disarmLocked()
}

// disarmLocked takes the node out of its pool, and reports whether it was there.
func (n *node) disarmLocked() bool {
	p := n.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if n.at < 0 {
		return false
	}
	p.heap.remove(n.at)
	return true
}

func (n *node) Reset(d time.Duration) bool { return n.Rearm(d, 0, 0) }

// Rearm moves the node to the pool of the caller's P.
func (n *node) Rearm(d, period time.Duration, seq uintptr) bool {
	when := engine.Deadline(d)
	n.mu.Lock()
	defer n.mu.Unlock()
	armed := n.disarmLocked()
	n.pool = n.ts.own()
	n.pool.mu.Lock()
	n.pool.armLocked(n, when, period, seq)
	n.pool.mu.Unlock()
	return armed
}
