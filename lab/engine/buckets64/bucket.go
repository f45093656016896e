package buckets64

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/detent-go/detent/lab/engine"
	"github.com/detent-go/detent/lab/internal/ksleep"
)

// bucket is a heap with its lock and its timer goroutine.
type bucket struct {
	mu       sync.Mutex
	heap     heap
	closed   bool
	created  bool          // the timer goroutine runs
	sleeping bool          // it sleeps in note
	parked   bool          // it waits for ready, because there is no timer
	until    int64         // when it will wake, if sleeping
	note     ksleep.Note   // ends its sleep
	ready    chan struct{} // ends its wait; has room for one

	fired, wakeups uint64

	calls  ksleep.Calls
	asleep atomic.Int32   // threads in the kernel, 0 or 1
	proc   sync.WaitGroup // the timer goroutine

	_ [64]byte // the next bucket's lock is in another cache line
}

// armLocked arms a node that is not armed.
func (b *bucket) armLocked(n *node, when int64, period time.Duration, seq uintptr) {
	if b.closed {
		b.mu.Unlock()
		panic("lab: buckets64: timer started after Close")
	}
	n.when, n.period, n.seq = when, int64(period), seq
	b.heap.push(n)
	if n.at != 0 {
		return
	}
	// The first of its bucket: the timer goroutine has to know.
	switch {
	case b.sleeping && b.until > when:
		b.sleeping = false
		b.note.Wakeup()
	case b.parked:
		b.parked = false
		b.ready <- struct{}{}
	case !b.created:
		b.created = true
		b.proc.Go(b.timerproc)
	}
}

// timerproc is the timer goroutine.
func (b *bucket) timerproc() {
	b.mu.Lock()
	for !b.closed {
		b.sleeping = false
		b.wakeups++
		wait := b.fireLocked(engine.Now())
		if b.closed {
			break
		}
		if wait < 0 {
			b.parked = true
			b.mu.Unlock()
			<-b.ready
		} else {
			b.sleeping, b.until = true, b.heap[0].when
			b.note.Clear()
			b.mu.Unlock()
			b.asleep.Store(1)
			b.note.Sleep(time.Duration(wait))
			b.asleep.Store(0)
		}
		b.mu.Lock()
	}
	b.mu.Unlock()
}

// fireLocked fires what is due at now, and returns how long it is until the next
// timer is, or -1 if there is none. It gives up mu during each call.
func (b *bucket) fireLocked(now int64) (wait int64) {
	for len(b.heap) > 0 && !b.closed {
		n := b.heap[0]
		if n.when > now {
			return n.when - now
		}
		if n.period > 0 {
			n.when = engine.NextPeriod(n.when, n.period, now)
			b.heap.down(0)
		} else {
			b.heap.remove(0)
		}
		b.fired++
		f, arg, seq := n.f, n.arg, n.seq
		b.mu.Unlock()
		if f == nil {
			go arg.(func())()
		} else {
			f(arg, seq)
		}
		b.mu.Lock()
	}
	return -1
}

// close ends the bucket's timer goroutine, and waits for it.
func (b *bucket) close() {
	b.mu.Lock()
	b.closed = true
	for _, n := range b.heap {
		n.at = -1
	}
	b.heap = nil
	switch {
	case b.sleeping:
		b.sleeping = false
		b.note.Wakeup()
	case b.parked:
		b.parked = false
		b.ready <- struct{}{}
	}
	b.mu.Unlock()
	b.proc.Wait()
}
