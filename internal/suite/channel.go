package suite

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"
)

// The rule of Go 1.23 for the channels of timers: once Stop or Reset has
// returned, no value from before it can be received, and the result is true if
// no value had been.

func testNoStaleValueAfterStop(t *testing.T, e Engine) {
	together(t, "stopping ended", 20, func(t testing.TB, g int) {
		for i := range Scale(50) {
			tm := e.NewTimer(time.Duration(rand.IntN(1000)) * time.Microsecond)
			time.Sleep(time.Duration((g+i)%4) * time.Millisecond)
			// Due or not: nobody has received.
			if !tm.Stop() {
				t.Error("Stop before anything was received = false")
			}
			empty(t, "stopped", tm.C())
			if tm.Stop() {
				t.Error("second Stop = true")
			}
			if i%10 == 0 {
				time.Sleep(2 * time.Millisecond)
			}
			empty(t, "stopped twice", tm.C())
		}
	})
}

func testNoStaleValueAfterReset(t *testing.T, e Engine) {
	together(t, "resetting ended", 20, func(t testing.TB, g int) {
		tm := e.NewTimer(0)
		for i := range Scale(50) {
			time.Sleep(time.Duration((g+i)%4) * time.Millisecond)
			if !tm.Reset(time.Hour) {
				t.Error("Reset to an hour before anything was received = false")
			}
			empty(t, "reset to an hour", tm.C())
			// Again and again around the time at which it is due.
			for range 20 {
				if !tm.Reset(time.Duration(rand.IntN(50)) * time.Microsecond) {
					t.Error("Reset before anything was received = false")
				}
				runtime.Gosched()
			}
			start := time.Now()
			if !tm.Reset(2 * time.Millisecond) {
				t.Error("Reset before anything was received = false")
			}
			fires(t, "the last Reset", tm, start, 2*time.Millisecond)
			empty(t, "received", tm.C())
			if tm.Reset(time.Duration(rand.IntN(1000)) * time.Microsecond) {
				t.Error("Reset after the value was received = true")
			}
		}
		if !tm.Stop() {
			t.Error("Stop before anything was received = false")
		}
	})
}

// One goroutine receives while another stops or resets: either the value was
// received or the result is true, never both, never neither.
func testStopMeansNotReceived(t *testing.T, e Engine) {
	end := map[string]func(Timer) bool{
		"Stop":  Timer.Stop,
		"Reset": func(tm Timer) bool { return tm.Reset(time.Hour) },
	}
	for name, end := range end {
		var mu sync.Mutex
		received, stopped := 0, 0
		together(t, "every round ended", 4*runtime.GOMAXPROCS(0), func(t testing.TB, _ int) {
			for range e.size(2000) / 4 {
				tm := e.NewTimer(time.Duration(rand.IntN(200)) * time.Microsecond)
				quit, got := make(chan struct{}), make(chan bool, 1)
				go func() {
					select {
					case <-tm.C():
						got <- true
					case <-quit:
						got <- false
					}
				}()
				pause := time.Duration(rand.IntN(300)) * time.Microsecond
				for start := time.Now(); time.Since(start) < pause; {
					runtime.Gosched()
				}
				pending := end(tm)
				if pending {
					close(quit)
				}
				// When it was not pending the receiver has the value, and
				// nothing but the value lets it go.
				if r := Await(t, "the receiver has the value of which "+name+" said false", got); r == pending {
					t.Errorf("%s = %v, received = %v", name, pending, r)
				}
				empty(t, name, tm.C())
				tm.Stop()
				mu.Lock()
				if pending {
					stopped++
				} else {
					received++
				}
				mu.Unlock()
			}
		})
		t.Logf("%s: true %d times, received %d times", name, stopped, received)
	}
}

func testValueIsTheTime(t *testing.T, e Engine) {
	together(t, "every timer fired", len(durations), func(t testing.TB, i int) {
		d := durations[i]
		for kind, newTimer := range e.timerKinds() {
			start := time.Now()
			fires(t, kind, newTimer(d), start, d)
		}
		start := time.Now()
		v := Await(t, "After fired", e.After(d))
		if now := time.Now(); v.Sub(start) < d || v.After(now) {
			t.Errorf("After(%v): value at +%v, received at +%v", d, v.Sub(start), now.Sub(start))
		}
	})
}

func testSyncChannels(t *testing.T, e Engine) {
	e.need(t, SyncChannels)
	tm, tk := e.NewTimer(0), e.NewTicker(time.Microsecond)
	defer tk.Stop()
	time.Sleep(time.Millisecond)
	for _, c := range []<-chan time.Time{tm.C(), tk.C(), e.After(0)} {
		if len(c) != 0 || cap(c) != 0 {
			t.Errorf("len = %d, cap = %d, want 0, 0", len(c), cap(c))
		}
	}
	Await(t, "the value came", tm.C())
}
