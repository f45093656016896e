package shard

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/detent-go/detent/internal/rt"
	"github.com/detent-go/detent/internal/slab"
)

// Weakenable is the Target of a Send timer that can let go of what it sends on.
type Weakenable interface {
	Target
	// Weaken returns what fires in its place. It is called without the shard lock,
	// by one goroutine at a time.
	Weaken(s *Shard) Weak
}

// Weak is a Target that keeps nothing alive but itself.
type Weak interface {
	Target
	// HeldLocked is called when timer h has it as its Target.
	HeldLocked(h Handle)
}

// Kinds of nodes beside those of timers. A Send with a Weakenable becomes
const (
	sendSeen = Tick + 1 + iota // one that was pending at a sweep
	sendWeak                   // and at another, since when it has a Weak
)

// sweeper has the timers of a group weakened that are pending for longer than the
// collector takes from one cycle to the next: what nobody waits for any more is
// collected then.
//
// Once in each cycle the finalizer of an object that nobody refers to starts a sweep,
// and another object is made if there may be something to sweep in the next one. So
// a timer that fires or is stopped within a cycle costs nothing, and a group without
// such timers, and a program without garbage, has no sweeps.
//
// A sweep holds the lock of a shard for sweepHold nodes at a time. It passes over
// chunks in which no timer has a Target, and it rests after it, for so long that sweeps
// take no more than a hundredth of a CPU.
type sweeper struct {
	armed atomic.Bool // there is an object

	mu    sync.Mutex // held while it sweeps
	rests int64      // until when, in monotonic time; guarded by mu
	found []weakening
}

// weakening is a timer that is to be weakened.
type weakening struct {
	h    Handle
	from Weakenable
	to   Weak
}

const (
	sweepHold = 256 // nodes looked at under one hold of the lock
	sweepMost = 32  // timers weakened at once
	sweepRest = 100 // how many times as long as a sweep the rest after it is

	longestRest = int64(10 * time.Second)
)

// cycle is an object that is collected in the next cycle. It refers to something,
// lest it share its memory with others.
type cycle struct{ _ *byte }

// arm has the next cycle of the collector start a sweep.
func (g *Group) armSweep() {
	if g.sweeper.armed.CompareAndSwap(false, true) {
		runtime.SetFinalizer(new(cycle), func(*cycle) {
			g.sweeper.armed.Store(false)
			go g.sweep()
		})
	}
}

// sweep goes over the shards that may have something to be weakened.
func (g *Group) sweep() {
	g.sweeper.mu.Lock()
	defer g.sweeper.mu.Unlock()
	if g.closed.Load() {
		return
	}
	began, _ := rt.Now()
	if began < g.sweeper.rests {
		g.armSweep()
		return
	}
	again := false
	for _, s := range g.shards {
		again = s.sweep(&g.sweeper.found) || again
	}
	now, _ := rt.Now()
	// It may have taken long because the process stood still.
	g.sweeper.rests = now + min(sweepRest*(now-began), longestRest)
	if again {
		g.armSweep()
	}
}

// sweepLaterLocked notes that a timer has been started which sweeps are for.
func (s *Shard) sweepLaterLocked(t *Timer) {
	if _, ok := t.Target.(Weakenable); ok && rt.Hides && s.group.manual == nil {
		s.sweeps, s.wantSweep = true, true
	}
}

// sweep goes over the shard's timers, and returns whether it has to be gone over
// in the next cycle.
func (s *Shard) sweep(found *[]weakening) (again bool) {
	s.Lock()
	if !s.sweeps || s.closed {
		s.Unlock()
		return false
	}
	s.sweeps = false // Who starts another one from here on says so.
	for c := 0; !s.closed && c < len(s.payloads); c++ {
		for k := 0; !s.closed && k < slab.ChunkSize && s.payloads[c].targets != nil; k += sweepHold {
			again = s.sweepPartLocked(uint32(c), k, found) || again
			s.breathe()
			if len(*found) >= sweepMost {
				s.Unlock()
				s.weaken(found)
				s.Lock()
			}
		}
	}
	s.Unlock()
	s.weaken(found)
	if again {
		s.Lock()
		s.sweeps = true
		s.Unlock()
	}
	return again
}

// sweepPartLocked goes over sweepHold nodes of a chunk, from number k on.
func (s *Shard) sweepPartLocked(c uint32, k int, found *[]weakening) (again bool) {
	targets := s.payloads[c].targets
	for end := k + sweepHold; k < end; k++ {
		i := c*slab.ChunkSize + uint32(k)
		n := s.nodes.Node(i)
		if n.Where == 0 {
			continue
		}
		switch Kind(n.Kind) {
		case Send:
			if _, ok := targets[k].(Weakenable); ok {
				n.Kind, again = uint8(sendSeen), true
			}
		case sendSeen:
			again = true
			*found = append(*found, weakening{h: n.Handle(i), from: targets[k].(Weakenable)})
		}
	}
	return again
}

// weaken weakens the timers that have been found, those that are still pending. They
// may have been reset meanwhile, but not started anew: that is another timer.
func (s *Shard) weaken(found *[]weakening) {
	for k := range *found {
		f := &(*found)[k]
		f.to = f.from.Weaken(s)
	}
	for k, f := range *found {
		if k%sweepMost == 0 {
			s.Lock()
		}
		if !s.closed && s.nodes.Current(f.h) {
			i := f.h.Index()
			s.payloads[i/slab.ChunkSize].targets[i%slab.ChunkSize] = f.to
			s.nodes.Node(i).Kind = uint8(sendWeak)
			f.to.HeldLocked(f.h)
		}
		if k%sweepMost == sweepMost-1 || k == len(*found)-1 {
			s.Unlock()
		}
	}
	clear(*found) // They must not keep what they have let go of.
	*found = (*found)[:0]
}
