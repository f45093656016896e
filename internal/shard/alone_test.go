package shard

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/detent-go/detent/internal/waker"
)

// fireAll starts timers that the timerfd is armed for, of all kinds and in turns,
// and waits for them.
func fireAll(t *testing.T, g *Group) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed(t), 0))
	var fired atomic.Int64
	n := int64(0)
	for range 100 {
		for range rng.IntN(20) {
			grid := [...]uint8{Exact, Grid(10_000), 0, urgentGrid}[rng.IntN(4)]
			start(t, g, Kind(rng.IntN(3)), grid, time.Duration(rng.Int64N(1_000_000)), func(*Shard, Handle) { fired.Add(1) })
			n++
		}
		if rng.IntN(2) == 0 {
			eventually(t, "the timers so far", func() bool { return fired.Load() == n })
		}
	}
	eventually(t, "all timers", func() bool { return fired.Load() == n })
}

// TestBackstopAlone: without a timerfd no timer is lost.
func TestBackstopAlone(t *testing.T) {
	g := newReal(t, Config{Shards: 1})
	g.shards[0].starting = true // as where making it failed
	fireAll(t, g)
	if g.shards[0].precise != nil {
		t.Error("there is a timerfd")
	}
}

// withoutBackstop returns a group of one shard that only the timerfd wakes.
func withoutBackstop(t *testing.T) *Group {
	g := newReal(t, Config{Shards: 1})
	s := g.shards[0]
	start(t, g, Sleep, Exact, time.Microsecond, func(*Shard, Handle) {})
	s.Lock()
	s.armBackstopLocked(never)
	s.backstop = waker.NewBackstop(func() {})
	have := s.precise != nil
	s.Unlock()
	if !have {
		t.Skip("there is no timerfd on this system or in this build")
	}
	return g
}

// TestPreciseAlone: if the Go scheduler never came to look at its timers, the
// timerfd would do: it is armed for everything that is due soon.
func TestPreciseAlone(t *testing.T) { fireAll(t, withoutBackstop(t)) }

// TestReaderReplaced: while a callback on the reader's goroutine is blocked, and
// has been found to be, another one reads the timerfd.
func TestReaderReplaced(t *testing.T) {
	for range 5 {
		g := withoutBackstop(t)
		s := g.shards[0]
		called, release := make(chan struct{}), make(chan struct{})
		start(t, g, Call, Exact, 100*time.Microsecond, func(*Shard, Handle) {
			close(called)
			<-release
		})
		<-called
		eventually(t, "the reader to be found blocked", func() bool {
			s.woken(false) // as the backstop would
			s.Lock()
			defer s.Unlock()
			return len(s.runners) == 0
		})
		var woken atomic.Int64
		for range 3 {
			before := woken.Load()
			start(t, g, Sleep, Exact, 100*time.Microsecond, func(*Shard, Handle) { woken.Add(1) })
			eventually(t, "a sleeper beside the blocked reader", func() bool { return woken.Load() > before })
		}
		close(release)
	}
}
