package timer_test

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/detent-go/detent/internal/rt"
	"github.com/detent-go/detent/internal/suite"
	"github.com/detent-go/detent/timer"
)

// collects skips the test where channels are not collected.
func collects(t *testing.T) {
	if !rt.Hides {
		t.Skip("in a portable build a pending timer keeps its channel")
	}
}

// TestCollected: timers with channels that nobody refers to are collected, however
// they were made, and those are not that somebody can still hear of, however little
// he has kept.
func TestCollected(t *testing.T) {
	collects(t)
	s := mustNew(t, nil)
	const n = 3000 // some chunks of nodes
	abandon := func() {
		for k := range n {
			d := time.Hour + time.Duration(k)*time.Millisecond
			switch k % 5 {
			case 0:
				s.After(d)
			case 1:
				s.NewTimer(d)
			case 2:
				s.NewTimerAt(time.Now().Add(d))
			case 3:
				s.WithSlack(0).NewTimer(d).Reset(2 * d)
			case 4: // once more than it is found pending
				t := s.NewTimer(d)
				t.Stop()
				t.Reset(d)
			}
		}
	}
	var kept []*timer.Timer
	var chans []<-chan time.Time
	for range 100 {
		k := s.NewTimer(time.Hour)
		k.C = nil // as to take a case out of a select
		kept = append(kept, k)
		chans = append(chans, s.After(time.Hour))
	}
	called := s.AfterFunc(time.Hour, func() {})
	abandon()
	suite.Eventually(t, "the abandoned timers are collected", func() bool {
		runtime.GC()
		return s.Stats().Pending == uint64(len(kept)+len(chans))+1
	})
	for range 5 {
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	if got := s.Stats().Pending; got != uint64(len(kept)+len(chans))+1 {
		t.Fatalf("%d timers are pending that somebody refers to, want %d", got, len(kept)+len(chans)+1)
	}
	for _, k := range kept {
		if !k.Stop() {
			t.Error("a timer that is referred to was not pending")
		}
	}
	if !called.Stop() {
		t.Error("a callback was not pending")
	}
	runtime.KeepAlive(chans)
}

// TestWeakenedFire: timers that are still pending after several cycles of the
// collector fire, for those who have the Timer, the channel, or wait for it.
func TestWeakenedFire(t *testing.T) {
	s := mustNew(t, nil)
	var got atomic.Int64
	var wg sync.WaitGroup
	const d = 150 * time.Millisecond
	began := time.Now()
	check := func(at time.Time) {
		if early := d - at.Sub(began); early > 0 {
			t.Errorf("%v early", early)
		}
		got.Add(1)
	}
	const n = 200
	for range n {
		wg.Go(func() { check(<-s.After(d)) })
		k := s.NewTimer(d)
		c := s.After(d)
		wg.Go(func() {
			for len(k.C) == 0 || len(c) == 0 {
				time.Sleep(10 * time.Millisecond)
			}
			check(<-k.C)
			check(<-c)
		})
	}
	for time.Since(began) < d {
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	wg.Wait()
	if got.Load() != 3*n {
		t.Errorf("%d values, want %d", got.Load(), 3*n)
	}
}

// TestWeakenedReset: timers that are reset, stopped and started anew while the
// collector runs send as often as they are let, and never a value from before.
func TestWeakenedReset(t *testing.T) {
	s := mustNew(t, nil)
	var end atomic.Bool
	defer end.Store(true)
	var collector sync.WaitGroup
	collector.Go(func() {
		for !end.Load() {
			runtime.GC()
			time.Sleep(time.Millisecond)
		}
	})
	defer collector.Wait()
	defer end.Store(true)
	rounds := 60
	if testing.Short() {
		rounds = 15
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(rand.Uint64(), 0))
			ts := make([]*timer.Timer, 50)
			for k := range ts {
				ts[k] = s.NewTimer(time.Hour)
			}
			for range rounds {
				time.Sleep(5 * time.Millisecond)
				for k, x := range ts {
					switch rng.IntN(6) {
					case 0: // fire
						before := time.Now()
						x.Reset(time.Duration(rng.IntN(3)) * time.Millisecond)
						if at := <-x.C; at.Before(before) {
							t.Errorf("a value from %v before", before.Sub(at))
						}
						if x.Stop() {
							t.Error("pending after it has fired")
						}
						x.Reset(time.Hour)
					case 1: // push back or forth
						if !x.Reset(time.Hour + time.Duration(rng.IntN(1000)-500)*time.Second) {
							t.Error("was not pending")
						}
					case 2:
						if !x.Stop() || x.Stop() {
							t.Error("Stop once")
						}
						if x.Reset(time.Hour) {
							t.Error("pending after Stop")
						}
					case 3: // abandon
						ts[k] = s.NewTimer(time.Hour)
					}
				}
			}
			for _, x := range ts {
				if !x.Stop() {
					t.Error("a timer was lost")
				}
			}
		})
	}
	wg.Wait()
	if !rt.Hides {
		return
	}
	suite.Eventually(t, "what has been abandoned is collected", func() bool { return s.Stats().Pending == 0 })
}

// TestSweepsEnd: where no timer with a channel is pending there are no sweeps: the
// service is collected itself when it is closed.
func TestCollectedClosed(t *testing.T) {
	collects(t)
	var gone atomic.Bool
	func() {
		s, err := timer.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		for range 100 {
			s.After(time.Hour)
		}
		runtime.GC()
		runtime.AddCleanup(s, func(*struct{}) { gone.Store(true) }, nil)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}()
	suite.Eventually(t, "a closed service is collected", func() bool {
		runtime.GC()
		return gone.Load()
	})
}

// BenchmarkNewTimer is what a timer with a channel costs to make and stop.
func BenchmarkNewTimer(b *testing.B) {
	b.Run("detent", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			timer.NewTimer(time.Hour).Stop()
		}
	})
	b.Run("time", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			time.NewTimer(time.Hour).Stop()
		}
	})
}
