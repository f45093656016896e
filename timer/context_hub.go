package timer

import (
	"context"
	"hash/maphash"
	"sync"
	"sync/atomic"
)

// A context whose parent is not of this package asks package context for a call
// when the parent is done. Package context makes a goroutine for each such call,
// so that a hundred thousand contexts under one parent would make as many at
// once. Therefore contexts whose parents have the same Done channel share one
// call, in a hub. A context that finds no other for its channel, as most of those
// that are made while a request is served, does without the hub and asks for a
// call to its own cancel function.

// ctxHub is contexts whose parents, not of this package, have the same Done
// channel. It lives from its first member until its last has left.
type ctxHub struct {
	done <-chan struct{}

	mu      sync.Mutex
	state   hubState
	members ctxList
	stop    func() bool // takes back the request for a call; nil if not made yet
}

type hubState uint8

const (
	hubOpen  hubState = iota
	hubFired          // the parents are done
	hubEmpty          // the last member has left
)

// hubPlace is where contexts with the same Done channel find each other. What
// stands there is overwritten by that of any other channel with the same hash:
// then there come to be several hubs for one channel.
type hubPlace struct {
	hub atomic.Pointer[ctxHub]
	// alone is a context that has asked for a call of its own.
	alone atomic.Pointer[deadlineCtx]
}

var (
	hubPlaces [256]hubPlace
	hubSeed   = maphash.MakeSeed()
)

func hubPlaceOf(done <-chan struct{}) *hubPlace {
	return &hubPlaces[maphash.Comparable(hubSeed, done)%uint64(len(hubPlaces))]
}

// joinForeign sees to it that t, whose timer runs and whose parent is not of this
// package, ends when its parent does. cancel is t's cancel function. In a
// synctest bubble contexts do not share a call: what package context starts for
// it belongs to the bubble.
func (t *deadlineCtx) joinForeign(cancel context.CancelFunc, inBubble bool) {
	at := hubPlaceOf(t.bond.done)
	if !inBubble {
		if h := at.hub.Load(); h != nil && h.done == t.bond.done && h.join(t) {
			return
		}
		if a := at.alone.Load(); a != nil && a.bond.done == t.bond.done {
			newHub(t, at)
			return
		}
		at.alone.Store(t)
	}
	stop := context.AfterFunc(t.parent, cancel)
	t.mu.Lock()
	if !t.ended() {
		t.bond.stop, stop = stop, nil
	}
	t.mu.Unlock()
	if stop != nil {
		t.unlinkAlone(stop)
	}
}

// unlinkAlone takes back the request that stop is for.
func (t *deadlineCtx) unlinkAlone(stop func() bool) {
	hubPlaceOf(t.bond.done).alone.CompareAndSwap(t, nil)
	stop()
}

// newHub makes a hub with the member t.
func newHub(t *deadlineCtx, at *hubPlace) {
	h := &ctxHub{done: t.bond.done}
	h.join(t)
	at.hub.Store(h)
	stop := context.AfterFunc(t.parent, h.fire)
	h.mu.Lock()
	if h.state == hubOpen && h.members.first != nil {
		h.stop, stop = stop, nil
	} else if h.state == hubOpen {
		h.state = hubEmpty
	}
	h.mu.Unlock()
	if stop != nil {
		h.retire()
		stop()
	}
}

// join makes t a member, and returns false if the hub is at its end. A context
// that has ended counts as a member that has left.
func (h *ctxHub) join(t *deadlineCtx) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.state != hubOpen {
		return false
	}
	if t.enter(nil, h) {
		h.members.add(t)
	}
	return true
}

// leave takes t, which has ended, out of the hub.
func (h *ctxHub) leave(t *deadlineCtx) {
	var stop func() bool
	h.mu.Lock()
	h.members.remove(t)
	// Before there is something to stop, newHub sees to an empty hub.
	if h.state == hubOpen && h.members.first == nil && h.stop != nil {
		h.state = hubEmpty
		stop = h.stop
	}
	h.mu.Unlock()
	if stop != nil {
		h.retire()
		stop()
	}
}

// fire ends the members, one by one, so that those who leave meanwhile do not
// wait for the rest.
func (h *ctxHub) fire() {
	h.mu.Lock()
	if h.state == hubOpen {
		h.state = hubFired
	}
	for h.members.first != nil {
		t := h.members.first
		h.members.remove(t)
		h.mu.Unlock()
		t.parentCanceled()
		h.mu.Lock()
	}
	h.mu.Unlock()
	h.retire()
}

// retire lets nobody find the hub any more.
func (h *ctxHub) retire() { hubPlaceOf(h.done).hub.CompareAndSwap(h, nil) }
