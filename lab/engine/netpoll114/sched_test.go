package netpoll114_test

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/detent-go/detent/internal/suite"
	"github.com/detent-go/detent/lab/engine/netpoll114"
	"github.com/detent-go/detent/lab/internal/enginetest"
)

func open(t testing.TB, procs int) *netpoll114.Engine {
	t.Helper()
	e, err := netpoll114.New(procs)
	enginetest.SkipUnsupported(t, err)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		e.Close()
		suite.Eventually(t, "all threads have ended", func() bool { return e.Counters().Threads == 0 })
	})
	return e
}

// TestTasks: tasks that start tasks all run once, on all P's, whatever blocks.
func TestTasks(t *testing.T) {
	for _, procs := range []int{1, 2, 5} {
		e := open(t, procs)
		n := suite.Scale(20_000)
		ran := make([]atomic.Int32, n)
		var total atomic.Int64
		for i := range n {
			e.Go(func() {
				switch {
				case i%1000 == 0:
					time.Sleep(2 * time.Millisecond)
				case i%100 == 1:
					runtime.Gosched()
				case i%1000 == 2:
					defer func() { ran[i].Add(1); total.Add(1) }()
					runtime.Goexit()
				}
				ran[i].Add(1)
				total.Add(1)
			})
		}
		suite.Eventually(t, "all tasks ran", func() bool { return total.Load() >= int64(n) })
		for i := range ran {
			if k := ran[i].Load(); k != 1 {
				t.Fatalf("task %d ran %d times", i, k)
			}
		}
		t.Logf("%d P's: %+v", procs, e.Counters())
	}
}

// TestSteal: the P that fires a storm of timers has all their tasks, and others take
// of them.
func TestSteal(t *testing.T) {
	e := open(t, 2)
	const n = 500
	var running, most, total atomic.Int64
	deadline := time.Now().Add(5 * time.Millisecond)
	for range n {
		e.Start(time.Until(deadline), 0, nil, func() {
			now := running.Add(1)
			for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
			}
			for begin := time.Now(); time.Since(begin) < 20*time.Microsecond; {
				runtime.Gosched()
			}
			running.Add(-1)
			total.Add(1)
		}, 0)
	}
	suite.Eventually(t, "all tasks ran", func() bool { return total.Load() == n })
	t.Logf("%d at a time, %+v", most.Load(), e.Counters())
	suite.Eventually(t, "something was stolen", func() bool {
		for range 200 {
			e.Start(0, 0, nil, func() { time.Sleep(10 * time.Microsecond) }, 0)
		}
		return e.Counters().Steals > 0
	})
}

// TestBlockedP: sysmon takes the P away from a task that blocks, and its timers and
// tasks go on, with one P as with more.
func TestBlockedP(t *testing.T) {
	for _, procs := range []int{1, 3} {
		e := open(t, procs)
		release := make(chan struct{})
		var blocked sync.WaitGroup
		for range 2 * procs {
			blocked.Add(1)
			e.Go(func() { blocked.Done(); <-release })
		}
		blocked.Wait() // more tasks than P's have begun
		for range 20 {
			fired := make(chan struct{})
			e.Start(time.Millisecond, 0, nil, func() { close(fired) }, 0)
			suite.Await(t, "a task ran beside those that block", fired)
			sent := make(chan struct{})
			e.Start(time.Millisecond, 0, func(any, uintptr) { close(sent) }, nil, 0)
			suite.Await(t, "a timer fired beside tasks that block", sent)
		}
		if c := e.Counters(); c.Threads < 2*procs || c.Nanosleeps == 0 {
			t.Errorf("with %d tasks blocked: %+v", 2*procs, c)
		}
		close(release)
		suite.Eventually(t, "threads that are not needed end", func() bool { return e.Counters().Threads <= 2*procs+2 })
	}
}

// TestNoWakeupLost: one timer or task at a time, at the very moments at which the
// threads of the engine go to rest. Where a wake-up is lost nothing else comes to
// the rescue.
func TestNoWakeupLost(t *testing.T) {
	for _, procs := range []int{1, 2, 4} {
		e := open(t, procs)
		for i := range suite.Scale(2000) {
			done := make(chan struct{})
			end := func(any, uintptr) { close(done) }
			switch d := time.Duration(rand.IntN(60)) * time.Microsecond; i % 4 {
			case 0:
				e.Go(func() { close(done) })
			case 1:
				e.Start(0, 0, end, nil, 0)
			case 2:
				n := e.Start(time.Hour, 0, end, nil, 0)
				spin(d)
				if !n.Reset(0) {
					t.Fatal("Reset of a timer of an hour = false")
				}
			case 3:
				n := e.Start(time.Hour, 0, end, nil, 0)
				if !n.Stop() {
					t.Fatal("Stop of a timer of an hour = false")
				}
				spin(d)
				if n.Reset(time.Microsecond) {
					t.Fatal("Reset of a stopped timer = true")
				}
			}
			suite.Await(t, "what was started has happened", done)
			spin(time.Duration(rand.IntN(30)) * time.Microsecond)
		}
	}
}

func spin(d time.Duration) {
	for start := time.Now(); time.Since(start) < d; {
		runtime.Gosched()
	}
}

// TestIdle: an engine with nothing to do for an hour does nothing: no thread comes
// back from the netpoller or leaves its bed.
func TestIdle(t *testing.T) {
	e := open(t, 3)
	for range 100 {
		e.Start(time.Hour, 0, func(any, uintptr) {}, nil, 0)
	}
	done := make(chan struct{})
	e.Go(func() { close(done) })
	suite.Await(t, "a task ran", done)
	suite.Eventually(t, "nothing happens for 30 ms", func() bool {
		before := e.Counters()
		time.Sleep(30 * time.Millisecond)
		return e.Counters() == before
	})
}

// TestTickersSkip: a ticker whose P's were all busy for long has lost the periods in
// between, and is on its schedule again afterwards.
func TestTickersSkip(t *testing.T) {
	e := open(t, 1)
	const period = 5 * time.Millisecond
	start := time.Now()
	var first, ticks atomic.Int64
	n := e.Start(period, period, func(any, uintptr) {
		if ticks.Add(1) == 1 {
			// The engine's only P is not available meanwhile.
			first.Store(int64(time.Since(start)))
			time.Sleep(20 * period)
		}
	}, nil, 0)
	suite.Eventually(t, "the ticker ticks again", func() bool { return ticks.Load() >= 3 })
	got := ticks.Load()
	passed := time.Since(start)
	n.Stop()
	most := int64((passed-time.Duration(first.Load())-20*period)/period) + 3
	if got > most {
		t.Errorf("%d ticks in %v of which 20 periods of %v were lost, want at most %d", got, passed, period, most)
	}
}

// TestClutter: a program that stops all of its timers does not fill the heaps with
// them, though none of them is ever due.
func TestClutter(t *testing.T) {
	e := open(t, 2)
	for range 100_000 {
		e.Start(time.Hour, 0, func(any, uintptr) {}, nil, 0).Stop()
	}
	if n := netpoll114.Filed(e); n > 100 {
		t.Errorf("%d timers in the heaps, none pending", n)
	}
	var pending []interface{ Stop() bool }
	for range 10_000 {
		pending = append(pending, e.Start(time.Hour, 0, func(any, uintptr) {}, nil, 0))
		e.Start(time.Hour, 0, func(any, uintptr) {}, nil, 0).Stop()
	}
	if n := netpoll114.Filed(e); n > 14_000 {
		t.Errorf("%d timers in the heaps, 10000 pending", n)
	}
	for _, n := range pending {
		if !n.Stop() {
			t.Fatal("Stop of a pending timer = false")
		}
	}
	if c := e.Counters(); c.Pending != 0 {
		t.Errorf("%d pending, want 0", c.Pending)
	}
}
