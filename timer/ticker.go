package timer

import (
	"time"

	"github.com/detent-go/detent/internal/rt"
	"github.com/detent-go/detent/internal/shard"
)

// Ticker holds a channel that delivers ticks of a clock at intervals, as
// [time.Ticker]. It must be made with [NewTicker].
type Ticker struct {
	C <-chan time.Time
	t *ticker
	c chan time.Time // C, whatever becomes of that
}

// ticker is what the engine knows of a Ticker. It does not keep the channel
// alive: once nobody else has the channel, the collector ends the ticker.
type ticker struct {
	at     *place       // constant
	handle shard.Handle // guarded by the lock of at.shard
	// c is used by Fire, under the lock, while the ticker is pending: it is
	// not collected before collected, which ends the ticker, has had the lock.
	c    rt.HiddenChan[time.Time]
	dead bool // c must not be used any more; guarded by the lock
}

// NewTicker returns a new [Ticker] with a channel that will receive the current
// time after each tick. The period of the ticks is d. Ticks keep to the schedule
// of the first: one that comes late does not move the next. The ticker drops
// ticks for a receiver that is slow. A ticker whose channel nobody refers to any
// more is collected, stopped or not; in a portable build it has to be stopped.
// NewTicker panics if d is not greater than
// zero.
func (s *Service) NewTicker(d time.Duration) *Ticker { return s.newTicker(d, "NewTicker") }

// Tick is NewTicker for those who need only the channel. Unlike NewTicker it
// returns nil if d is not greater than zero.
func (s *Service) Tick(d time.Duration) <-chan time.Time {
	if d <= 0 {
		return nil
	}
	return s.newTicker(d, "Tick").C
}

func (s *Service) newTicker(d time.Duration, op string) *Ticker {
	if d <= 0 {
		panic("non-positive interval for NewTicker")
	}
	c := make(chan time.Time, 1)
	t := &ticker{c: rt.HideChan(c)}
	st := shard.Timer{Kind: shard.Tick, Target: t, Period: int64(d)}
	sh, h, ok := s.start(&st, d, op)
	if !ok {
		t.at = &place{svc: s, bubble: newBubbled(s.e, c, func() { sendTime(c, time.Now()) }, d, d)}
		return &Ticker{C: c, t: t, c: c}
	}
	// The ticker may tick already: Fire uses neither of these.
	t.at = &s.places[sh.Index]
	t.handle = h
	rt.BeforeCollected(c, t.collected)
	return &Ticker{C: c, t: t, c: c}
}

// Fire sends a tick.
func (t *ticker) Fire(s *shard.Shard, _ shard.Handle) {
	if !t.dead {
		sendTime(t.c.Chan(), s.Time())
	}
}

// collected ends a ticker whose channel is about to be collected.
func (t *ticker) collected() {
	sh := t.at.shard
	sh.Lock()
	sh.StopLocked(t.handle)
	t.dead = true
	sh.Unlock()
}

// Stop turns off the ticker: no more ticks will be received. It does not close
// the channel. On a Ticker that was not made by [NewTicker] it does nothing.
func (t *Ticker) Stop() {
	if t.t == nil {
		return
	}
	at := t.t.at
	if at.bubble != nil {
		at.bubble.stop()
		return
	}
	at.shard.Lock()
	at.shard.StopLocked(t.t.handle)
	t.drain()
	at.shard.Unlock()
}

// Reset stops the ticker and sets its period to d. The next tick will come after
// the new period. No tick from before is received afterwards. Reset panics if d
// is not greater than zero, if the ticker was not made by [NewTicker], or if its
// service is closed.
func (t *Ticker) Reset(d time.Duration) {
	if d <= 0 {
		panic("non-positive interval for Ticker.Reset")
	}
	if t.t == nil {
		panic("timer: Reset called on uninitialized Ticker")
	}
	at := t.t.at
	if at.bubble != nil {
		at.bubble.reset(d, d, "Reset")
		return
	}
	now, inBubble := at.svc.e.group.Now()
	if inBubble {
		panic("timer: Reset called in a synctest bubble on a Ticker made outside")
	}
	st := shard.Timer{Kind: shard.Tick, Target: t.t, Period: int64(d)}
	at.svc.schedule(&st, d, now)
	st.Sample()
	at.shard.LockToStart()
	h, ok := at.shard.RestartLocked(t.t.handle, &st, now)
	if ok {
		t.t.handle = h
		t.drain()
	}
	at.shard.EndReset(&st)
	if !ok {
		closedPanic("Reset")
	}
}

func (t *Ticker) drain() {
	select {
	case <-t.c:
	default:
	}
}
