package ksleep

import (
	"sync/atomic"
	"time"
)

// Calls counts system calls. It may be read at any time.
type Calls struct {
	Waits atomic.Uint64 // sleeps
	Wakes atomic.Uint64
}

// Note is an event that happens once, until it is cleared: one thread sleeps on
// it, and another wakes it. It is what the runtime calls a note.
//
// Between a Clear and the next, there may be one Wakeup and one Sleep, from
// different goroutines; whoever clears makes sure that neither is under way.
// What was done before Wakeup is seen after the Sleep that it ended.
type Note struct {
	Calls *Calls // where the system calls are counted; not nil

	key uint32 // 1 once woken; atomic
}

// Clear takes the event back.
func (n *Note) Clear() { atomic.StoreUint32(&n.key, 0) }

// Wakeup makes the event happen, and wakes the sleeper.
func (n *Note) Wakeup() {
	if atomic.SwapUint32(&n.key, 1) != 0 {
		panic("ksleep: note woken twice")
	}
	n.Calls.Wakes.Add(1)
	wake(&n.key, 1)
}

// Sleep returns when the event has happened, at once if it has already, and
// reports true; or after d, and reports false. A negative d is for ever.
func (n *Note) Sleep(d time.Duration) bool {
	start := time.Now()
	for left := d; atomic.LoadUint32(&n.key) == 0; {
		n.Calls.Waits.Add(1)
		wait(&n.key, 0, left)
		if d < 0 {
			continue
		}
		if left = d - time.Since(start); left <= 0 {
			return atomic.LoadUint32(&n.key) != 0
		}
	}
	return true
}
