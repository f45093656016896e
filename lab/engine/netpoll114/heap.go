package netpoll114

import (
	"sync"
	"sync/atomic"
)

// arity is the number of children of a node.
const arity = 4

// timers are those of one P.
type timers struct {
	owner *proc // whose they are

	mu     sync.Mutex
	heap   []*node // 4-ary, in the order of when; nodes do not know their index
	closed bool
	fired  uint64

	// These may be read by anybody.
	first   atomic.Int64 // when of the heap's first node, 0 if it is empty
	count   atomic.Int32 // nodes in the heap
	deleted atomic.Int32 // of these, deleted ones
	adjust  atomic.Int32 // of these, modified to earlier
}

// lock is mu.Lock, but that tests see the wait.
func (ts *timers) lock() {
	if hook == nil {
		ts.mu.Lock()
		return
	}
	for step("lock"); !ts.mu.TryLock(); {
		pause()
	}
}

func (ts *timers) unlock() {
	ts.mu.Unlock()
	step("unlocked")
}

// insertLocked puts n into the heap.
func (ts *timers) insertLocked(n *node) {
	n.timers = ts
	ts.heap = append(ts.heap, n)
	ts.up(len(ts.heap) - 1)
	ts.changedLocked()
}

// removeLocked takes out the node at index i. It returns the least index at which
// there is another node now than before.
func (ts *timers) removeLocked(i int) (least int) {
	ts.heap[i].timers = nil
	last := len(ts.heap) - 1
	moved := ts.heap[last]
	ts.heap[last] = nil
	ts.heap = ts.heap[:last]
	least = i
	if i != last {
		ts.heap[i] = moved
		least = ts.up(i)
		ts.down(i)
	}
	ts.changedLocked()
	return least
}

// changedLocked says what the heap's first node is now, and how many there are.
func (ts *timers) changedLocked() {
	ts.count.Store(int32(len(ts.heap)))
	if len(ts.heap) == 0 {
		ts.first.Store(0)
	} else {
		ts.first.Store(ts.heap[0].when)
	}
}

// up moves the node at i towards the root as far as it belongs, and returns its
// new index.
func (ts *timers) up(i int) int {
	h := ts.heap
	n := h[i]
	for i > 0 {
		parent := (i - 1) / arity
		if h[parent].when <= n.when {
			break
		}
		h[i] = h[parent]
		i = parent
	}
	h[i] = n
	return i
}

// down moves the node at i away from the root as far as it belongs.
func (ts *timers) down(i int) {
	h := ts.heap
	n := h[i]
	for {
		first := arity*i + 1
		if first >= len(h) {
			break
		}
		child := first
		for c := first + 1; c < min(first+arity, len(h)); c++ {
			if h[c].when < h[child].when {
				child = c
			}
		}
		if n.when <= h[child].when {
			break
		}
		h[i] = h[child]
		i = child
	}
	h[i] = n
}
