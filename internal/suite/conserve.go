package suite

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// These tests let many goroutines do anything to the same timers and count.
//
// A timer is armed by its start and by each Reset that returns false; a Reset
// that returns true moves what is armed. It is disarmed by firing and by each
// Stop that returns true. So at the end, when nothing is armed,
//
//	1 + (Resets that were false) = firings + (Stops that were true)
//
// exactly, for each timer, whatever raced with what. For a timer with a channel
// a firing counts when the value is received: a value that nobody has received
// still counts as armed, and is taken back by the Stop or Reset that says true.

// account is one timer's count.
type account struct {
	tm                    Timer
	arms, fires, disarmed atomic.Int64
}

func (a *account) stop() {
	if a.tm.Stop() {
		a.disarmed.Add(1)
	}
}

func (a *account) reset(d time.Duration) {
	if !a.tm.Reset(d) {
		a.arms.Add(1)
	}
}

// balance is how often the timer is still armed: 1 or 0, if all is right.
func (a *account) balance() int64 {
	return a.arms.Load() - a.fires.Load() - a.disarmed.Load()
}

// audit disarms all timers, waits for what is on its way to be counted, and
// fails the test unless every balance is 0, then and a little later.
func audit(t *testing.T, accounts []*account) {
	t.Helper()
	for i := range accounts {
		accounts[i].stop()
	}
	for waited := time.Duration(0); waited < patience; waited += time.Millisecond {
		if !slices.ContainsFunc(accounts, func(a *account) bool { return a.balance() > 0 }) {
			break
		}
		time.Sleep(time.Millisecond)
	}
	settle()
	var arms, fires, disarmed int64
	for i := range accounts {
		a := accounts[i]
		if n := a.balance(); n != 0 {
			t.Errorf("timer %d: armed %d times, fired %d, stopped %d: %+d",
				i, a.arms.Load(), a.fires.Load(), a.disarmed.Load(), n)
		}
		arms, fires, disarmed = arms+a.arms.Load(), fires+a.fires.Load(), disarmed+a.disarmed.Load()
	}
	t.Logf("%d timers: armed %d times, fired %d, stopped %d", len(accounts), arms, fires, disarmed)
}

// hammer runs op on the accounts, at random, from many goroutines.
func hammer(t *testing.T, accounts []*account, ops int, op func(a *account, r *rand.Rand)) {
	t.Helper()
	var wg sync.WaitGroup
	for g := range 4 * runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), uint64(g)))
			for i := range ops {
				op(accounts[r.IntN(len(accounts))], r)
				switch {
				case i%100 == 0:
					// Time to fire.
					time.Sleep(time.Duration(r.IntN(1000)) * time.Microsecond)
				case i%20 == 0:
					runtime.Gosched()
				}
			}
		})
	}
	wait(t, "the operations ended", &wg)
}

// short is a duration of at most a few ticks, often none, and now and then an
// hour, so that timers also leave and enter the near future.
func short(r *rand.Rand) time.Duration {
	switch r.IntN(8) {
	case 0:
		return time.Hour
	case 1:
		return 0
	case 2, 3:
		return time.Duration(r.IntN(50)) * time.Microsecond
	default:
		return time.Duration(r.IntN(2000)) * time.Microsecond
	}
}

func conserveFuncs(t *testing.T, e Engine, timers, ops int, d func(r *rand.Rand) time.Duration) {
	accounts := make([]*account, timers)
	for i := range accounts {
		a := new(account)
		accounts[i] = a
		a.arms.Store(1)
		a.tm = e.AfterFunc(time.Hour, func() { a.fires.Add(1) })
	}
	hammer(t, accounts, ops, func(a *account, r *rand.Rand) {
		if r.IntN(4) == 0 {
			a.stop()
		} else {
			a.reset(d(r))
		}
	})
	audit(t, accounts)
}

func testConserveFuncs(t *testing.T, e Engine) {
	conserveFuncs(t, e, 100, e.size(100_000), short)
}

// One timer, and durations so short that it is always about to fire.
func testConserveHot(t *testing.T, e Engine) {
	conserveFuncs(t, e, 1, e.size(50_000), func(r *rand.Rand) time.Duration {
		return time.Duration(r.IntN(20_000))
	})
}

func testConserveChannels(t *testing.T, e Engine) {
	e.need(t, ExactResults)
	accounts := make([]*account, 50)
	quit := make(chan struct{})
	var receivers sync.WaitGroup
	for i := range accounts {
		a := new(account)
		accounts[i] = a
		a.arms.Store(1)
		a.tm = e.NewTimer(time.Hour)
		// Every other timer has a goroutine that waits for it.
		if i%2 == 0 {
			receivers.Go(func() {
				for {
					select {
					case <-a.tm.C():
						a.fires.Add(1)
					case <-quit:
						return
					}
				}
			})
		}
	}
	hammer(t, accounts, e.size(50_000), func(a *account, r *rand.Rand) {
		switch r.IntN(6) {
		case 0:
			a.stop()
		case 1, 2:
			select {
			case <-a.tm.C():
				a.fires.Add(1)
			default:
			}
		default:
			a.reset(short(r))
		}
	})
	audit(t, accounts)
	close(quit)
	wait(t, "the receivers ended", &receivers)
}
