package suite

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"
)

// fires receives from tm what must come, and fails the test if it is early for
// a Reset to d that began at start.
func fires(t testing.TB, what string, tm Timer, start time.Time, d time.Duration) {
	t.Helper()
	v := Await(t, what, tm.C())
	if early := d - v.Sub(start); early > 0 {
		t.Errorf("%s: early by %v", what, early)
	}
	if now := time.Now(); v.After(now) {
		t.Errorf("%s: value lies %v in the future", what, v.Sub(now))
	}
}

func testResetEarlier(t *testing.T, e Engine) {
	for kind, newTimer := range e.timerKinds() {
		together(t, "every timer fired", len(durations), func(t testing.TB, i int) {
			d := durations[i]
			tm := newTimer(time.Hour)
			start := time.Now()
			if !tm.Reset(d) {
				t.Errorf("%s: Reset of an hour to %v = false", kind, d)
			}
			fires(t, kind+" reset to earlier", tm, start, d)
			if tm.Stop() {
				t.Errorf("%s: Stop after firing = true", kind)
			}
		})
		// Downwards, a step at a time.
		tm := newTimer(time.Hour)
		for d := 24 * time.Hour; d > time.Second; d /= 2 {
			if !tm.Reset(d) {
				t.Errorf("%s: Reset of a pending timer to %v = false", kind, d)
			}
		}
		start := time.Now()
		tm.Reset(time.Millisecond)
		fires(t, kind+" reset downwards", tm, start, time.Millisecond)
	}
}

func testResetLater(t *testing.T, e Engine) {
	for kind, newTimer := range e.timerKinds() {
		together(t, "every timer fired", len(durations), func(t testing.TB, i int) {
			d := durations[i]
			start := time.Now()
			tm := newTimer(d)
			pending := tm.Reset(d + 5*time.Millisecond)
			if passed := time.Since(start); !pending && (passed < d || kind == "chan") {
				t.Errorf("%s: Reset of a timer of %v after %v = false", kind, d, passed)
			}
			if kind == "func" && !pending {
				Await(t, "the first firing", tm.C())
			}
			fires(t, kind+" reset to later", tm, start, d+5*time.Millisecond)
			time.Sleep(time.Millisecond)
			empty(t, kind+" reset to later, fired", tm.C())
		})
		// Upwards to the end of time, and stopped there.
		tm := newTimer(time.Hour)
		for d := time.Hour; d > 0; d *= 2 {
			if !tm.Reset(d) {
				t.Errorf("%s: Reset of a pending timer to %v = false", kind, d)
			}
		}
		if !tm.Stop() {
			t.Errorf("%s: Stop of a timer reset upwards = false", kind)
		}
	}
}

// The watchdog's way: pushed back over and over before it is due, it fires once,
// and not before the last push says. An attempt in which the machine was so
// slow that the timer was due in between proves nothing and is made again.
func testResetPushBack(t *testing.T, e Engine) {
	ds := []time.Duration{5 * time.Millisecond, 30 * time.Millisecond, 80 * time.Millisecond}
	together(t, "the timers fired", len(ds), func(t testing.TB, i int) {
		for range 20 {
			if pushBack(t, e, ds[i]) {
				return
			}
		}
		t.Logf("%v: the timer was due before it was pushed back, in every attempt", ds[i])
	})
}

// pushBack makes one attempt, and reports whether it proves something.
func pushBack(t testing.TB, e Engine, d time.Duration) (clean bool) {
	var mu sync.Mutex
	var fired []time.Time
	tm := e.AfterFunc(d, func() {
		mu.Lock()
		defer mu.Unlock()
		fired = append(fired, time.Now())
	})
	arms := 1
	var last time.Time
	for begin := time.Now(); time.Since(begin) < 2*d; time.Sleep(d / 20) {
		for range 20 {
			last = time.Now()
			if !tm.Reset(d) {
				arms++
			}
		}
	}
	count := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(fired)
	}
	Eventually(t, "a timer pushed back fired", func() bool { return count() >= arms })
	time.Sleep(d / 2)
	if n := count(); n != arms {
		t.Fatalf("armed %d times, fired %d times", arms, n)
	}
	if tm.Stop() {
		t.Error("Stop after firing = true")
	}
	if arms > 1 {
		return false
	}
	if early := d - fired[0].Sub(last); early > 0 {
		t.Errorf("%v after the last Reset: early by %v", d, early)
	}
	return true
}

// A Reset into the slot where the timer already is deadlocks one wheel.
func testResetSameSlot(t *testing.T, e Engine) {
	for kind, newTimer := range e.timerKinds() {
		ds := []time.Duration{20 * time.Millisecond, 100 * time.Millisecond, time.Hour}
		together(t, "the timers fired", len(ds), func(t testing.TB, i int) {
			d := ds[i]
			tm := newTimer(d)
			var start time.Time
			arms := 1
			for range Scale(1000) {
				start = time.Now()
				if !tm.Reset(d) {
					arms++
				}
			}
			if d == time.Hour {
				if !tm.Stop() {
					t.Errorf("%s: Stop of a timer of an hour = false", kind)
				}
				return
			}
			if kind == "chan" && arms > 1 {
				t.Errorf("%d Resets were false, and nobody has received", arms-1)
				arms = 1
			}
			for ; arms > 1; arms-- {
				Await(t, "an earlier firing", tm.C())
			}
			fires(t, kind+" reset into the same slot", tm, start, d)
		})
	}
}

func testResetAfterFire(t *testing.T, e Engine) {
	for kind, newTimer := range e.timerKinds() {
		together(t, "the timers fired", len(durations), func(t testing.TB, i int) {
			start := time.Now()
			tm := newTimer(0)
			fires(t, kind, tm, start, 0)
			for range 3 {
				d := durations[i]
				start := time.Now()
				if tm.Reset(d) {
					t.Errorf("%s: Reset(%v) of a fired timer = true", kind, d)
				}
				fires(t, kind+" reset after firing", tm, start, d)
				i = (i + len(durations)/2) % len(durations)
			}
			empty(t, kind, tm.C())
		})
	}
}

func testResetAfterStop(t *testing.T, e Engine) {
	for kind, newTimer := range e.timerKinds() {
		together(t, "the timers fired", len(durations), func(t testing.TB, i int) {
			tm := newTimer(time.Hour)
			for range 2 {
				if !tm.Stop() {
					t.Errorf("%s: Stop of a pending timer = false", kind)
				}
				start := time.Now()
				if tm.Reset(durations[i]) {
					t.Errorf("%s: Reset(%v) of a stopped timer = true", kind, durations[i])
				}
				fires(t, kind+" reset after Stop", tm, start, durations[i])
				if tm.Reset(time.Hour) {
					t.Errorf("%s: Reset of a fired timer = true", kind)
				}
			}
			tm.Stop()
		})
	}
}

// Random resets among durations of very different sizes move the timers through
// every level of a wheel, and between the wheel and what lies beside it.
func testResetAcrossLevels(t *testing.T, e Engine) {
	const timers = 50
	steps := Scale(200)
	sizes := slices.Concat(huge, []time.Duration{
		time.Hour, 24 * time.Hour, time.Minute, 64 * 64 * tick, 64 * 64 * 64 * tick, 64*64*64*tick - 1, 10 * time.Second,
	})
	for kind, newTimer := range e.timerKinds() {
		set := make([]Timer, timers)
		for i := range set {
			set[i] = newTimer(sizes[rand.IntN(len(sizes))])
		}
		for range steps {
			for _, tm := range set {
				if d := sizes[rand.IntN(len(sizes))]; !tm.Reset(d) {
					t.Fatalf("%s: Reset of a pending timer to %v = false", kind, d)
				}
			}
		}
		start := time.Now()
		for i, tm := range set {
			if !tm.Reset(time.Duration(i) * time.Millisecond) {
				t.Errorf("%s: Reset of a pending timer = false", kind)
			}
		}
		for i, tm := range set {
			fires(t, kind+" reset across the levels", tm, start, time.Duration(i)*time.Millisecond)
		}
	}
}
