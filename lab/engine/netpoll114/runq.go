package netpoll114

import "sync/atomic"

// task is what the engine runs in place of a goroutine.
type task func()

// runqSize is how many tasks a P's own queue holds.
const runqSize = 256

// runq is the run queue of a P: a ring that the P's thread alone puts to, at tail, and
// from which everybody takes at head. A slot is read before head is moved past it
// by compare-and-swap; if that fails, what was read is of no use, for the slot may
// have been filled anew.
type runq struct {
	head, tail atomic.Uint32
	slots      [runqSize]atomic.Pointer[task]
}

func (q *runq) len() int { return int(q.tail.Load() - q.head.Load()) }

// put adds a task, unless the ring is full. Only the P's thread may call it.
func (q *runq) put(t *task) bool {
	tail := q.tail.Load()
	if tail-q.head.Load() == runqSize {
		return false
	}
	q.slots[tail%runqSize].Store(t)
	q.tail.Store(tail + 1)
	return true
}

// get takes the oldest task, or returns nil.
func (q *runq) get() *task {
	for {
		head := q.head.Load()
		if head == q.tail.Load() {
			return nil
		}
		t := q.slots[head%runqSize].Load()
		if q.head.CompareAndSwap(head, head+1) {
			return t
		}
	}
}

// grab takes half of the tasks, rounded up, into batch, and returns how many.
func (q *runq) grab(batch *[runqSize / 2]*task) int {
	for {
		head := q.head.Load()
		n := q.tail.Load() - head
		if n -= n / 2; n == 0 {
			return 0
		}
		if n > runqSize/2 {
			continue // head and tail were not read together
		}
		for i := range n {
			batch[i] = q.slots[(head+i)%runqSize].Load()
		}
		if q.head.CompareAndSwap(head, head+n) {
			return int(n)
		}
	}
}

// steal takes half of another P's tasks, and returns one of them; the others go into
// q, which is empty and its thread's.
func (q *runq) steal(from *runq) (one *task, n int) {
	var batch [runqSize / 2]*task
	if n = from.grab(&batch); n == 0 {
		return nil, 0
	}
	for _, t := range batch[:n-1] {
		if !q.put(t) {
			panic("lab: netpoll114: tasks were stolen into a queue that is not empty")
		}
	}
	return batch[n-1], n
}
