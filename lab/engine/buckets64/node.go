package buckets64

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

	mu     sync.Mutex
	bucket *bucket // where it is armed, or was last

	// These are protected by the bucket's mu.
	when   int64
	period int64
	seq    uintptr
	at     int // index in the heap, -1 if not armed
}

func (ts *timers) Start(d, period time.Duration, f engine.Func, arg any, seq uintptr) engine.Node {
	b := ts.own()
	n := &node{ts: ts, f: f, arg: arg, bucket: b, at: -1}
	when := engine.Deadline(d)
	b.mu.Lock()
	b.armLocked(n, when, period, seq)
	b.mu.Unlock()
	return n
}

func (n *node) Stop() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.disarmLocked()
}

// disarmLocked takes the node out of its bucket, and reports whether it was in
// there. If it was the first, timerproc wakes for nothing: cheaper than to wake it
// now in order to tell it to sleep on.
func (n *node) disarmLocked() bool {
	b := n.bucket
	b.mu.Lock()
	defer b.mu.Unlock()
	if n.at < 0 {
		return false
	}
	b.heap.remove(n.at)
	return true
}

func (n *node) Reset(d time.Duration) bool { return n.Rearm(d, 0, 0) }

// Rearm moves the node to the bucket of the caller's P.
func (n *node) Rearm(d, period time.Duration, seq uintptr) bool {
	when := engine.Deadline(d)
	n.mu.Lock()
	defer n.mu.Unlock()
	armed := n.disarmLocked()
	n.bucket = n.ts.own()
	n.bucket.mu.Lock()
	n.bucket.armLocked(n, when, period, seq)
	n.bucket.mu.Unlock()
	return armed
}
