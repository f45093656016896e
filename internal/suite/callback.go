package suite

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func testCallbackOwnTimer(t *testing.T, e Engine) {
	const timers, rounds = 20, 30
	all := newShots(timers)
	var extra atomic.Int64
	for i := range timers {
		var tm Timer
		var next time.Time
		left := rounds
		start := time.Now()
		// Only the function touches the variables, and after Reset(0) has
		// handed them to it: it never runs twice at a time.
		tm = e.AfterFunc(time.Hour, func() {
			if early := time.Until(next); early > 0 {
				t.Errorf("early by %v", early)
			}
			if tm.Stop() {
				t.Error("Stop of a timer in its own function = true")
			}
			if left--; left == 0 {
				all.fire(i, start, 0)
				return
			} else if left < 0 {
				extra.Add(1)
				return
			}
			d := time.Duration(rand.IntN(2000)) * time.Microsecond
			if left%3 == 0 {
				// Stopped again at once.
				if tm.Reset(time.Hour) {
					t.Error("Reset of a timer in its own function = true")
				}
				if !tm.Stop() {
					t.Error("Stop of a timer that its own function has reset = false")
				}
			}
			next = time.Now().Add(d)
			if tm.Reset(d) {
				t.Error("Reset of a timer in its own function = true")
			}
		})
		if !tm.Reset(0) {
			t.Error("Reset of a pending timer = false")
		}
	}
	all.checkOnce(t)
	if n := extra.Load(); n != 0 {
		t.Errorf("%d firings too many", n)
	}
}

func testCallbackOtherTimers(t *testing.T, e Engine) {
	// A function does with other timers all that can be done.
	for range Scale(20) {
		var wg sync.WaitGroup
		wg.Add(3)
		stop := e.AfterFunc(time.Hour, func() { t.Error("a stopped timer fired") })
		earlier := e.AfterFunc(time.Hour, wg.Done)
		later := e.AfterFunc(time.Hour, func() { t.Error("a timer of two hours fired") })
		e.AfterFunc(time.Millisecond, func() {
			defer wg.Done()
			if !stop.Stop() {
				t.Error("Stop of a pending timer in a function = false")
			}
			if !earlier.Reset(time.Millisecond) || !later.Reset(2*time.Hour) {
				t.Error("Reset of a pending timer in a function = false")
			}
			e.AfterFunc(0, wg.Done)
			tk := e.NewTicker(time.Millisecond)
			tk.Reset(time.Hour)
			tk.Stop()
		})
		wait(t, "what a function started and reset has fired", &wg)
		if !later.Stop() {
			t.Error("Stop of a timer of two hours = false")
		}
	}
}

// Two functions due at the same time stop each other.
func testCallbackStopEachOther(t *testing.T, e Engine) {
	var stopped, ran atomic.Int64
	together(t, "each timer fired or was stopped", 10, func(t testing.TB, _ int) {
		for i := range Scale(50) {
			var pair [2]Timer
			var done, arms atomic.Int64
			for j := range pair {
				pair[j] = e.AfterFunc(time.Hour, func() {
					ran.Add(1)
					if pair[1-j].Stop() {
						stopped.Add(1)
						done.Add(1)
					}
					done.Add(1)
				})
			}
			arms.Add(2)
			for _, tm := range pair {
				// The first may have stopped the second already.
				if !tm.Reset(time.Duration(i%3) * time.Millisecond) {
					arms.Add(1)
				}
			}
			Eventually(t, "each timer fired or was stopped", func() bool { return done.Load() >= arms.Load() })
			time.Sleep(time.Millisecond)
			if done, arms := done.Load(), arms.Load(); done != arms {
				t.Errorf("armed %d times, fired or stopped %d times", arms, done)
			}
		}
	})
	t.Logf("%d ran, %d were stopped", ran.Load(), stopped.Load())
}

// Functions wait, for timers and for each other: none can end before all have
// begun.
func testCallbackSleeps(t *testing.T, e Engine) {
	e.need(t, Concurrent)
	n := Scale(300)
	all := newShots(n)
	var begun sync.WaitGroup
	begun.Add(n)
	for i := range n {
		start := time.Now()
		e.AfterFunc(time.Duration(i%3)*time.Millisecond, func() {
			e.Sleep(5 * time.Millisecond)
			<-e.After(time.Millisecond)
			begun.Done()
			begun.Wait()
			<-e.NewTimer(time.Millisecond).C()
			all.fire(i, start, 7*time.Millisecond)
		})
	}
	all.checkOnce(t)
}

// A function that ends its goroutine takes nothing with it.
func testCallbackGoexit(t *testing.T, e Engine) {
	n := Scale(2000)
	all := newShots(n)
	for i := range n {
		d, start := time.Duration(rand.IntN(3000))*time.Microsecond, time.Now()
		e.AfterFunc(d, func() {
			defer func() { _ = recover() }()
			all.fire(i, start, d)
			switch i % 4 {
			case 0:
				runtime.Goexit()
			case 1:
				panic("recovered by the function itself")
			}
		})
	}
	all.checkOnce(t)
	Await(t, "a timer fired after all that", e.After(time.Millisecond))
}

// blockers starts n functions that block from due on, and at the same time,
// mixed with them, others that do not. It returns when the others have run and
// the blockers have begun, and lets the blockers go.
func blockers(t *testing.T, e Engine, n, others int) {
	const d = 5 * time.Millisecond
	release := make(chan struct{})
	var blocked atomic.Int64
	var ended sync.WaitGroup
	all := newShots(others)
	order := rand.Perm(n + others)
	ended.Add(n)
	for _, i := range order {
		start := time.Now()
		if i >= others {
			e.AfterFunc(d, func() { blocked.Add(1); <-release; blocked.Add(-1); ended.Done() })
			continue
		}
		e.AfterFunc(d, func() { all.fire(i, start, d) })
	}
	all.checkOnce(t)
	Eventually(t, "every blocking function has begun", func() bool { return blocked.Load() == int64(n) })
	all.logLateness(t, "due together with those that block")

	// What is started while they block.
	more := newShots(200)
	for i := range more.fired {
		d, start := time.Duration(i%20)*time.Millisecond/4, time.Now()
		e.AfterFunc(d, func() { more.fire(i, start, d) })
	}
	done := make(chan struct{})
	go func() { e.Sleep(time.Millisecond); close(done) }()
	Await(t, "a Sleep returned while functions block", done)
	tk := e.NewTicker(time.Millisecond)
	for range 5 {
		Await(t, "a tick came while functions block", tk.C())
	}
	tk.Stop()
	more.checkOnce(t)
	more.logLateness(t, "started while they block")
	if got := blocked.Load(); got != int64(n) {
		t.Errorf("%d functions block, want %d", got, n)
	}
	close(release)
	wait(t, "the blocking functions ended", &ended)
}

func testCallbackBlocks(t *testing.T, e Engine) {
	e.need(t, Concurrent)
	for range 5 {
		blockers(t, e, 1, 100)
	}
}

func testCallbackBlocks1500(t *testing.T, e Engine) {
	e.need(t, Concurrent)
	blockers(t, e, 1500, 1500)
}

// Functions that take 100 ms each: one after another they would take longer
// than the test's patience.
func testCallbackSlow(t *testing.T, e Engine) {
	e.need(t, Concurrent)
	slow := int(patience/(100*time.Millisecond)) * 3 / 2
	const others = 100
	all, slept := newShots(others), newShots(slow)
	for _, i := range rand.Perm(slow + others) {
		d, start := time.Millisecond, time.Now()
		if i >= others {
			e.AfterFunc(d, func() {
				time.Sleep(100 * time.Millisecond)
				slept.fire(i-others, start, d+100*time.Millisecond)
			})
			continue
		}
		e.AfterFunc(d, func() { all.fire(i, start, d) })
	}
	all.checkOnce(t)
	all.logLateness(t, "due together with those of 100ms")
	slept.checkOnce(t)
}

// Functions that spin until another timer fires.
func testCallbackSpins(t *testing.T, e Engine) {
	e.need(t, Concurrent)
	if OneThread {
		t.Skip("a goroutine that spins stops the world")
	}
	var release atomic.Bool
	defer release.Store(true)
	var ended sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		ended.Add(1)
		e.AfterFunc(time.Millisecond, func() {
			defer ended.Done()
			for !release.Load() {
			}
		})
	}
	all := newShots(20)
	for i := range all.fired {
		d, start := time.Duration(i)*time.Millisecond, time.Now()
		e.AfterFunc(d, func() {
			all.fire(i, start, d)
			if int(all.total.Load()) == len(all.fired) {
				release.Store(true)
			}
		})
	}
	wait(t, "other timers fired beside functions that spin, and let them go", &ended)
	all.checkOnce(t)
	all.logLateness(t, "beside functions that spin on every P")
}
