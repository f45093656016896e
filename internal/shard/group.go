package shard

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/detent-go/detent/internal/hist"
	"github.com/detent-go/detent/internal/rt"
)

// Config is what a [Group] is made from.
type Config struct {
	Shards int  // number of shards; 0: GOMAXPROCS
	Inline bool // a shard has one runner at most, which is one of its wakers
	Blame  bool // have a thread tell the kernel's part of lateness from the scheduler's

	// Manual makes the group keep virtual time, which starts at 0, that is at
	// Epoch, and moves only in [Group.Advance]. Nothing wakes the group by
	// itself, and Inline is implied.
	Manual bool
	Epoch  time.Time

	base *base // see NewGroupOn

	// Lane has the group woken by a lane alone. It has one shard, and Inline is
	// implied. See NewLane.
	Lane *LaneOptions
}

// Group is the shards of one service.
type Group struct {
	shards []*Shard
	inline bool
	manual *manual      // nil where time passes by itself
	lane   *LaneOptions // nil but for a lane
	base   *base        // nil where the clock is rt.Now, or virtual
	closed atomic.Bool

	// read is the clock; nil where that is rt.Now.
	read func() (ns int64, bubbled bool)

	throttle *throttle // nil in a manual group
	witness  *witness  // nil unless asked for
	sweeper  sweeper

	// local finds the shard of the current P in a build that cannot ask for
	// the P: a sync.Pool keeps what is put into it with the P. What it makes
	// anew takes the shards in turn.
	local sync.Pool
	turn  atomic.Uint32
}

// NewGroup returns a group of empty shards. It starts nothing.
func NewGroup(c Config) *Group {
	n := c.Shards
	if c.Lane != nil {
		n = 1
	} else if n == 0 {
		n = runtime.GOMAXPROCS(0)
	}
	g := &Group{shards: make([]*Shard, n), inline: c.Inline || c.Manual || c.Lane != nil, lane: c.Lane, base: c.base}
	if c.Manual {
		g.manual = &manual{epoch: c.Epoch}
		g.read = g.manual.read
	} else {
		g.throttle = newThrottle()
		if c.Blame {
			g.witness = new(witness)
		}
	}
	if c.base != nil {
		g.read = c.base.read
	}
	for i := range g.shards {
		g.shards[i] = newShard(g, i)
	}
	if !rt.Pinned {
		g.local.New = func() any { return g.shards[int(g.turn.Add(1)-1)%n] }
	}
	return g
}

// Shards returns the group's shards.
func (g *Group) Shards() []*Shard { return g.shards }

// Local returns the shard of the P that the caller runs on, or ran on just now.
func (g *Group) Local() *Shard {
	if !rt.Pinned {
		s := g.local.Get().(*Shard)
		g.local.Put(s)
		return s
	}
	s := g.shardOf(rt.Pin())
	rt.Unpin()
	return s
}

// lock locks the shard of the P that the caller runs on.
func (g *Group) lock() *Shard {
	if !rt.Pinned {
		s := g.Local()
		s.mu.Lock()
		return s
	}
	s := g.shardOf(rt.Pin())
	if s.mu.TryLock() {
		return s
	}
	rt.Unpin()
	s.mu.Lock()
	rt.Pin()
	return s
}

// shardOf returns the shard of a P. There are more Ps than shards if GOMAXPROCS
// has grown, or if fewer were asked for.
func (g *Group) shardOf(p int) *Shard {
	if p < len(g.shards) {
		return g.shards[p]
	}
	return g.shards[p%len(g.shards)]
}

// Close ends the group: no pending timer fires any more, sleepers wake, and the
// wakers' goroutines end. A callback that is running runs on. It returns false
// when the group was closed already.
func (g *Group) Close() bool {
	if g.closed.Swap(true) {
		return false
	}
	for _, s := range g.shards {
		s.close()
	}
	if g.witness != nil {
		g.witness.close()
	}
	if g.base != nil {
		g.base.close()
	}
	return true
}

// Now returns the group's current time and whether the caller is in a synctest
// bubble, where that time means nothing: see [rt.Now].
func (g *Group) Now() (ns int64, bubbled bool) {
	if g.read == nil {
		return rt.Now()
	}
	return g.read()
}

// clock is Now outside of bubbles, where all goroutines of the group are.
func (g *Group) clock() int64 {
	now, _ := g.Now()
	return now
}

// Closed reports whether the group has been closed.
func (g *Group) Closed() bool { return g.closed.Load() }

// Stats is the counts of a group or shard since it was made.
type Stats struct {
	Started, Stopped, Reset, Fired, Pending, Wakeups uint64
	Lateness                                         hist.Hist
	Blame                                            Blame

	Waker    Waker // what wakes the group; the best that any shard has
	WakerErr error // why there is no better one, or nil
	BlameErr error // why there is no witness, though it was asked for, or nil

	Spun, Kept int64 // for how long a lane has spun, and kept its P, in nanoseconds
}

// Stats adds up the counts of all shards. It locks each shard in turn.
func (g *Group) Stats() *Stats {
	sum := new(Stats)
	for _, s := range g.shards {
		s.addStats(sum)
	}
	sum.Blame.fill(sum.Lateness.Count)
	if g.witness != nil {
		sum.BlameErr = g.witness.lastErr()
	}
	return sum
}

func (s *Shard) addStats(sum *Stats) {
	s.Lock()
	defer s.Unlock()
	sum.Started += s.started
	sum.Stopped += s.stopped
	sum.Reset += s.reset + s.pushed.Load()
	sum.Fired += s.fired
	sum.Pending += uint64(s.nodes.Len())
	sum.Wakeups += s.wakeups
	sum.Lateness.Add(&s.lateness)
	sum.Blame.add(&s.blame)
	sum.Waker = max(sum.Waker, s.wakerLocked())
	if s.preciseErr != nil {
		sum.WakerErr = s.preciseErr
	}
	s.addLaneStatsLocked(sum)
}
