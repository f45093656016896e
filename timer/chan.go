package timer

import (
	"time"

	"github.com/detent-go/detent/internal/rt"
	"github.com/detent-go/detent/internal/shard"
)

// chanTimer is a Timer with a channel, and its place.
type chanTimer struct {
	Timer
	place
}

// newChanTimer returns one that has not been started. Its place is what the engine
// knows of it.
func (s *Service) newChanTimer() *chanTimer {
	c := make(chan time.Time, 1)
	x := &chanTimer{Timer: Timer{C: c}, place: place{svc: s, c: c}}
	x.at = &x.place
	return x
}

// started notes where it has been started. The timer may have fired already: Fire
// uses neither of these, and nobody else has it yet.
func (x *chanTimer) started(sh *shard.Shard, h shard.Handle) {
	x.place.shard = sh
	x.handle.Store(uint64(h))
}

// sendNow sends the time of a bubble.
func (x *chanTimer) sendNow() { sendTime(x.c, time.Now()) }

// Fire sends the current time on the channel.
func (p *place) Fire(s *shard.Shard, _ shard.Handle) { sendTime(p.c, s.Time()) }

// Weaken returns what sends on the channel without keeping that from being
// collected.
//
// # Why no channel is used after it has been collected
//
// The channel, not the Timer, is what has to be watched: after [After] nobody has
// the Timer. A Timer refers to its channel by its place, whatever becomes of its
// field C. So once nobody refers to the channel, hidden references aside, nobody can
// receive from it, stop the timer or reset it, ever again. Then the finalizer runs,
// and until it has returned the channel is there. It takes the shard's lock, under
// which Fire uses the channel, ends the timer, and says that the channel is gone.
//
// A channel has one finalizer, so it has one hidden, which is kept in its place and
// serves whatever the timer is started for later.
func (p *place) Weaken(s *shard.Shard) shard.Weak {
	if p.hidden == nil {
		p.hidden = &hidden{shard: s, c: rt.HideChan(p.c)}
		rt.BeforeCollected(p.c, p.hidden.collected)
	}
	return p.hidden
}

// hidden is what the engine knows of a Timer with a channel that it does not keep.
// Nothing in it leads to the channel.
type hidden struct {
	shard *shard.Shard             // constant
	c     rt.HiddenChan[time.Time] // used by Fire, under the lock
	h     shard.Handle             // guarded by the lock
	dead  bool                     // c must not be used any more; guarded by the lock
}

// Fire sends the current time on the channel.
func (h *hidden) Fire(s *shard.Shard, _ shard.Handle) {
	if !h.dead {
		sendTime(h.c.Chan(), s.Time())
	}
}

// HeldLocked notes that the timer with the given handle holds h.
func (h *hidden) HeldLocked(handle shard.Handle) { h.h = handle }

// collected ends a timer whose channel is about to be collected.
func (h *hidden) collected() {
	h.shard.Lock()
	h.shard.StopLocked(h.h)
	h.dead = true
	h.shard.Unlock()
}
