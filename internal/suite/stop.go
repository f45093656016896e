package suite

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func testStopPending(t *testing.T, e Engine) {
	for kind, newTimer := range e.timerKinds() {
		for _, d := range []time.Duration{10 * time.Millisecond, 15 * time.Millisecond, time.Second, time.Hour} {
			start := time.Now()
			tm := newTimer(d)
			first := tm.Stop()
			if stopped := time.Since(start); stopped < d && !first {
				t.Errorf("%s: Stop %v after the start of a timer of %v = false", kind, stopped, d)
			}
			if tm.Stop() {
				t.Errorf("%s: second Stop = true", kind)
			}
			if d < time.Second {
				time.Sleep(2 * d)
			}
			if first {
				empty(t, kind+" stopped", tm.C())
			}
			if tm.Stop() {
				t.Errorf("%s: third Stop = true", kind)
			}
		}
	}
}

// A Stop of what has fired, and a second one, is a panic in one wheel and a
// deadlock in two others.
func testStopAfterFire(t *testing.T, e Engine) {
	for kind, newTimer := range e.timerKinds() {
		for _, d := range []time.Duration{0, 100 * time.Microsecond, 3 * time.Millisecond} {
			tm := newTimer(d)
			Await(t, "the timer fired", tm.C())
			for range 3 {
				if tm.Stop() {
					t.Errorf("%s: Stop of a timer of %v that fired = true", kind, d)
				}
			}
			empty(t, kind, tm.C())
		}
	}
}

// Every timer is stopped around the time at which it is due, and whatever Stop
// said must be so.
func testStopRacingExpiry(t *testing.T, e Engine) {
	const batch = 100
	workers := 4 * runtime.GOMAXPROCS(0)
	rounds := e.size(50000) / batch / workers
	var stopped, fired atomic.Int64
	together(t, "every timer fired or was stopped", workers, func(t testing.TB, _ int) {
		for range max(rounds, 1) {
			all := newShots(batch)
			timers := make([]Timer, batch)
			says := make([]bool, batch)
			for i := range batch {
				d, start := time.Duration(rand.Int64N(int64(3*time.Millisecond))), time.Now()
				timers[i] = e.AfterFunc(d, func() { all.fire(i, start, d) })
			}
			pause := time.Duration(rand.Int64N(int64(3 * time.Millisecond)))
			for start := time.Now(); time.Since(start) < pause; {
				runtime.Gosched()
				if OneThread {
					time.Sleep(time.Millisecond)
				}
			}
			for i, tm := range timers {
				says[i] = tm.Stop()
				if says[i] {
					stopped.Add(1)
				} else {
					fired.Add(1)
				}
			}
			checkSaid(t, says, all)
		}
	})
	t.Logf("%d stopped, %d fired", stopped.Load(), fired.Load())
}

// checkSaid fails the test unless exactly the timers fire of which Stop said
// false.
func checkSaid(t testing.TB, stopped []bool, all *shots) {
	t.Helper()
	want := int64(0)
	for _, s := range stopped {
		if !s {
			want++
		}
	}
	Eventually(t, fmt.Sprintf("%d timers fired of which Stop said false", want), func() bool {
		return all.total.Load() >= want
	})
	time.Sleep(4 * time.Millisecond)
	for i, s := range stopped {
		n := all.fired[i].Load()
		switch {
		case s && n != 0:
			t.Errorf("Stop was true, yet the function ran %d times", n)
		case !s && n != 1:
			t.Errorf("Stop was false, and the function ran %d times, want once", n)
		}
	}
	all.checkEarly(t)
}

// Of many Stops of one timer at most one is true, and none if it fired.
func testStopRacingStops(t *testing.T, e Engine) {
	const stoppers = 4
	rounds := e.size(5000)
	for kind, newTimer := range e.timerKinds() {
		won := 0
		for range rounds / 2 {
			tm := newTimer(time.Duration(rand.IntN(100)) * time.Microsecond)
			var trues atomic.Int32
			var wg sync.WaitGroup
			for range stoppers {
				spin := time.Duration(rand.IntN(150)) * time.Microsecond
				wg.Go(func() {
					for start := time.Now(); time.Since(start) < spin; {
						runtime.Gosched()
					}
					if tm.Stop() {
						trues.Add(1)
					}
				})
			}
			wg.Wait()
			switch n := trues.Load(); {
			case n > 1:
				t.Fatalf("%s: %d of %d Stops were true", kind, n, stoppers)
			case n == 1:
				won++
				empty(t, kind+" after a true Stop", tm.C())
			case kind == "func":
				// Nobody has received, so only the function's timer can have
				// got away from all the Stops.
				Await(t, "the timer fired that no Stop stopped", tm.C())
			default:
				t.Fatalf("%s: no Stop was true, and nobody has received", kind)
			}
		}
		t.Logf("%s: stopped %d of %d", kind, won, rounds/2)
	}
}

// Half of the timers of a crowd are stopped in random order while the others
// fire beside them, in the same slots.
func testStopHalf(t *testing.T, e Engine) {
	n := e.size(20000)
	all := newShots(n)
	timers := make([]Timer, n)
	stopped := make([]bool, n)
	for i := range n {
		d, start := time.Duration(rand.Int64N(int64(40*time.Millisecond))), time.Now()
		timers[i] = e.AfterFunc(d, func() { all.fire(i, start, d) })
	}
	for j, i := range rand.Perm(n) {
		if j%2 == 0 {
			stopped[i] = timers[i].Stop()
		}
	}
	time.Sleep(40 * time.Millisecond)
	checkSaid(t, stopped, all)
}
