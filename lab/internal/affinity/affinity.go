// Package affinity chooses one of n sets for the P that the caller runs on, as
// per-P structures of the Go runtime are chosen.
//
// It needs nothing of the runtime's inside: package sync keeps a part of each
// [sync.Pool] for each P, so what a P puts back it gets again. The choice is a
// hint. It can change when the collector empties the pool, and between the choice
// and its use the goroutine may have moved to another P: whoever uses a set locks
// it. It costs some 10 ns.
package affinity

import (
	"sync"
	"sync/atomic"
)

// Affinity chooses among n sets. It is safe for concurrent use.
type Affinity struct {
	n    uint32
	next atomic.Uint32
	pool sync.Pool
}

// New returns a choice among n sets.
func New(n int) *Affinity {
	a := &Affinity{n: uint32(n)}
	a.pool.New = func() any {
		i := int((a.next.Add(1) - 1) % a.n)
		return &i
	}
	return a
}

// Get returns the number of the set for the caller's P, from 0 to n-1.
func (a *Affinity) Get() int {
	if a.n == 1 {
		return 0
	}
	i := a.pool.Get().(*int)
	a.pool.Put(i)
	return *i
}
