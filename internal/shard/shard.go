// Package shard is detent's timer engine: one shard for each P, each with a
// wheel, a heap, and what wakes it.
//
// # Structure
//
// A timer has a deadline and a slack. Its slack, turned into a grid (see
// [Grid]), decides where it is filed: in the wheel where it may be a tick late
// or more, in the heap where it may not. Either way it has a limit, the deadline
// and at most the slack, which is when it should fire at the latest. A timer stays with the shard of the P
// that started it.
//
// Timers that are due stay where they are filed until somebody fires them, one
// by one: there is no list of expired timers. So a timer can be stopped until
// the moment that its callback is about to be called, and a precise timer never
// waits behind a million coarse ones: heap and wheel take turns.
//
// Who fires:
//
//   - Waker goroutines (the timerfd's reader and the backstop's calls, see
//     package waker) do what is quick and cannot block: waking sleepers, sending
//     on channels, ticking.
//   - Runners call the callbacks, one after another, for as long as callbacks are
//     due. Most of the time there is none; a burst of short callbacks has one for
//     each P at most, one of long ones twice as many every interval. A waker
//     becomes a runner itself while the shard's callbacks have been short;
//     otherwise, and for more than one, it starts goroutines. (To start a
//     goroutine makes the runtime wake another thread, which costs more than
//     all else that a wake-up does.)
//   - A lane (see [NewLane]) has one goroutine for all of this, which is its waker and
//     its only runner.
//   - A runner that has been in one callback for longer than [watchInterval] is
//     written off: it does not count any more, and goes away when its callback
//     returns. Others take its place: one at first, and twice as many every time
//     that all of them are found blocked, so n blocked callbacks hold up the
//     next one for about log2(n) intervals, and calmDelay before. The backstop is armed for that check
//     whenever a runner is in a callback. If the runner was the timerfd's reader,
//     there is a new reader.
//
// # Never early, never lost
//
// A timer is fired only under the shard lock, by somebody who has read the
// clock after taking it and found the deadline passed. It is fired once because
// the same lock hold ends its generation.
//
// It is not lost because every lock hold that files a timer, or leaves timers
// behind, sees to it that the shard is armed for the earliest of them or
// sooner: fields armedPrecise and armedBackstop never lie after what is needed,
// and each wake-up resets its field and arms again. A precise deadline is always
// armed with the backstop too, a little later, so that it neither depends on an
// idle P to be looked at nor on the timerfd to exist.
//
// # Pushing back
//
// Reset to a later time is most of what happens to the timers of busy
// connections. It changes the node's deadline and grid under the node lock
// alone, and leaves the node filed where it is. Whoever finds the node due there
// finds its deadline still to come, and files it anew. The condition for it is
// that the node is not filed after its new limit. In the wheel the node's tick tells,
// which package slab lets the holder of the node lock read; in the heap it is
// enough that the limit does not move to earlier. And it must not have been filed
// for the backstop alone if it is to be precise now.
//
// # Ground rules
//
//   - The lock of a [Shard] is the shard lock of package slab. It is held with
//     the goroutine pinned, where the build pins: for a bounded amount of work,
//     and never while a callback runs, or while anything blocks or parks.
//     Allocation of large memory happens outside of it.
//   - Fields of Shard below mu are guarded by mu, except where noted.
//   - Nobody holds two shard locks.
//   - The function or [Target] of a Call timer is called without the shard lock,
//     that of others with it: those must not block.
package shard

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/detent-go/detent/internal/heap"
	"github.com/detent-go/detent/internal/hist"
	"github.com/detent-go/detent/internal/rt"
	"github.com/detent-go/detent/internal/slab"
	"github.com/detent-go/detent/internal/waker"
	"github.com/detent-go/detent/internal/wheel"
)

// Kind says what a timer does when it is due.
type Kind uint8

const (
	Call  Kind = iota // fire on a runner
	Send              // fire under the shard lock
	Sleep             // as Send, and also when the shard is closed
	Tick              // as Send, and file again a period later
)

// Target is what a timer acts on that has more to it than a function. Types that
// are a single pointer or channel need no allocation to become one.
type Target interface {
	// Fire is called when timer h of shard s is due; see [Kind] for how. h is 0
	// for a timer that was due when it was started, and for
	// a Sleep of a shard that is closed.
	Fire(s *Shard, h Handle)
}

// Handle names a timer of a shard.
type Handle = slab.Handle

// never is the time of nothing armed or pending.
const never = math.MaxInt64

// Shard is the timers of one P. See the package's ground rules.
type Shard struct {
	Index int // in its group; constant
	group *Group

	mu       sync.Mutex
	closed   bool
	starting bool // the timerfd is being made, or there cannot be one
	steps    bool // constant; the clock can go back, so that nothing is filed in the wheel
	eager    bool // constant; any timer, however coarse, is looked at by endStart

	// nodes has rules of its own for access without mu: see package slab.
	nodes    slab.Slab
	payloads []payload // parallel to the chunks of nodes
	loaded   int       // keeps the loads of loadLocked from being optimized away
	// Timers in the profile, and those that have to leave it.
	sampled   int
	unsampled []uint64

	wheel *wheel.Wheel
	heap  *heap.Heap

	precise    alarm           // nil until the first precise timer
	witness    *waker.Witness  // that watches the timerfd, or nil
	preciseErr error           // why the timerfd could not be made
	retryAt    int64           // when to try again
	backstop   *waker.Backstop // nil in a manual group, and for a lane
	// The times that the wakers are armed for, or never.
	armedPrecise  int64
	armedBackstop int64
	// For the blame, since when the wakers were to wake: those times, or when
	// they were armed if that was later.
	preciseFrom  int64
	backstopFrom int64
	atOnce       bool // the backstop was last armed for less than tightDelay ahead
	hurried      int  // how many wakes of the backstop in a row it was so
	yielding     bool // who came of the backstop lets others have their turn
	breathing    bool // somebody is at work, because of between
	between      wakeup
	wheelsTurn   bool // the wheel is looked at before the heap
	busy         int  // wakes of the timerfd's reader to go until it is trusted to be in time

	runners []*runner // those not written off
	spare   []*runner // those that have left, to be used again
	wave    int       // how many runners the last round of all-blocked started
	calls   uint64    // callbacks begun
	watched uint64    // what calls was when the backstop last looked
	long    int       // short callbacks to go until the waker calls them itself

	sweeps    bool // there may be timers for a sweep
	wantSweep bool // and the one who has started one is to see to it

	stopped, reset, fired, wakeups, started uint64
	lateness                                hist.Hist
	blame                                   Blame

	_ [64]byte
	// pushed counts the pushes back that were made on this shard's P.
	pushed atomic.Uint64
	_      [64]byte
}

func newShard(g *Group, index int) *Shard {
	s := &Shard{Index: index, group: g, armedPrecise: never, armedBackstop: never, wave: 1, steps: g.base.steps()}
	s.eager = g.manual != nil || g.base != nil
	s.wheel = wheel.New(&s.nodes, 0) // It catches up with its first timer.
	s.heap = heap.New(&s.nodes)
	if g.witness != nil {
		s.blame.Told = new(Told)
	}
	if g.manual == nil && g.lane == nil {
		s.backstop = waker.NewBackstop(func() { s.woken(false) })
	}
	return s
}

// Lock takes the shard lock and pins the goroutine. It waits unpinned.
func (s *Shard) Lock() {
	rt.Pin()
	if s.mu.TryLock() {
		return
	}
	rt.Unpin()
	s.mu.Lock()
	rt.Pin()
}

// Unlock releases the shard lock.
func (s *Shard) Unlock() {
	samples := s.unsampled
	if samples != nil {
		s.unsampled = nil
	}
	s.mu.Unlock()
	rt.Unpin()
	if samples != nil {
		forget(samples...)
	}
}

// breathe lets others have the lock.
func (s *Shard) breathe() {
	s.Unlock()
	s.Lock()
}

// LockToStart is Lock for a caller that is going to start or reset a timer: it
// makes room for one more node first.
func (s *Shard) LockToStart() {
	s.Lock()
	if !s.closed && s.nodes.Full() {
		s.reserveLocked()
	}
}

// reserveLocked makes room for one more node, unless the shard is closed. It
// releases the lock while it allocates: whatever the caller has read under it
// before may have changed.
func (s *Shard) reserveLocked() {
	for !s.closed && s.nodes.Full() {
		s.Unlock()
		ch := new(slab.Chunk)
		s.Lock()
		if s.closed || !s.nodes.Full() {
			return // Someone else has grown the slab; ch becomes garbage.
		}
		if at := s.nodes.Grow(ch); at == len(s.payloads) {
			s.payloads = append(s.payloads, payload{})
		}
	}
}

// freeLocked returns node i, in no container and with its generation ended.
func (s *Shard) freeLocked(i uint32, n *slab.Node) {
	s.clearLocked(i)
	if s.sampled != 0 {
		s.dropSampleLocked(i)
	}
	if at := s.nodes.Free(i, n); at >= 0 {
		s.payloads[at] = payload{}
	}
}

// removeLocked takes node n out of its container.
func (s *Shard) removeLocked(n *slab.Node) {
	if n.Where == heap.Where {
		s.heap.Remove(n)
	} else {
		s.wheel.Remove(n)
	}
}
