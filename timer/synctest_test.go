package timer_test

import (
	"math"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/detent-go/detent/internal/suite"
	"github.com/detent-go/detent/timer"
)

// bubbles runs f in a bubble for each way to reach an engine there, and checks
// that the bubble leaves nothing behind. That years in a bubble take no time
// shows in the test's coming to an end.
func bubbles(t *testing.T, f func(t *testing.T, e suite.Engine)) {
	exact := time.Duration(0)
	outside := mustNew(t, nil)
	inside := func(o *timer.Options) func(t *testing.T) suite.Engine {
		return func(t *testing.T) suite.Engine { return service("", mustNew(t, o)) }
	}
	fixed := func(e suite.Engine) func(*testing.T) suite.Engine {
		return func(*testing.T) suite.Engine { return e }
	}
	for _, way := range []struct {
		name   string
		engine func(t *testing.T) suite.Engine
	}{
		{"functions", fixed(functions())},
		{"inside", inside(nil)},
		{"insideExact", inside(&timer.Options{Slack: &exact})},
		{"insideInline", inside(&timer.Options{Callbacks: timer.Inline})},
		{"outside", fixed(service("", outside))},
		{"outsideExact", fixed(service("", outside.WithSlack(0)))},
		{"outsideCoarse", fixed(service("", outside.WithSlack(time.Second)))},
		{"absolute", fixed(absolute("", outside))},
		{"embedded", fixed(embedding("", outside))},
		{"viewMadeInside", func(*testing.T) suite.Engine { return service("", outside.WithSlack(time.Minute)) }},
	} {
		t.Run(way.name, func(t *testing.T) {
			before := runtime.NumGoroutine()
			synctest.Test(t, func(t *testing.T) { f(t, way.engine(t)) })
			suite.Eventually(t, "the bubble left no goroutine", func() bool {
				return runtime.NumGoroutine() <= before
			})
		})
	}
}

// wantPassed checks that exactly d has passed since start.
func wantPassed(t *testing.T, what string, start time.Time, d time.Duration) {
	t.Helper()
	if got := time.Since(start); got != d {
		t.Errorf("%s after %v, want exactly %v", what, got, d)
	}
}

const year = 365 * 24 * time.Hour

func TestBubbleExact(t *testing.T) {
	bubbles(t, func(t *testing.T, e suite.Engine) {
		for _, d := range []time.Duration{1, time.Microsecond, 1234567, time.Second, time.Hour, year, 0, -1} {
			want := max(d, 0)
			start := time.Now()
			e.Sleep(d)
			wantPassed(t, "Sleep returned", start, want)

			start = time.Now()
			if v := <-e.NewTimer(d).C(); v.Sub(start) != want {
				t.Errorf("NewTimer(%v): value at +%v", d, v.Sub(start))
			}
			wantPassed(t, "NewTimer fired", start, want)

			start = time.Now()
			if v := <-e.After(d); v.Sub(start) != want {
				t.Errorf("After(%v): value at +%v", d, v.Sub(start))
			}
			wantPassed(t, "After fired", start, want)

			start = time.Now()
			done := make(chan struct{})
			e.AfterFunc(d, func() {
				wantPassed(t, "AfterFunc ran", start, want)
				close(done)
			})
			<-done
		}
	})
}

func TestBubbleOrder(t *testing.T) {
	bubbles(t, func(t *testing.T, e suite.Engine) {
		fired := make(chan int, 10)
		for _, i := range []int{5, 3, 9, 1, 7, 2, 8, 4, 6, 0} {
			e.AfterFunc(time.Duration(i)*time.Hour, func() { fired <- i })
		}
		for hour := range 10 {
			synctest.Wait()
			if n := len(fired); n != 1 {
				t.Fatalf("%d fired in hour %d, want one", n, hour)
			}
			if i := <-fired; i != hour {
				t.Errorf("%d fired in hour %d", i, hour)
			}
			e.Sleep(time.Hour)
		}
	})
}

func TestBubbleStopReset(t *testing.T) {
	bubbles(t, func(t *testing.T, e suite.Engine) {
		var fired atomic.Int64
		f := e.AfterFunc(time.Hour, func() { fired.Add(1) })
		c := e.NewTimer(time.Hour)
		for _, tm := range []suite.Timer{f, c} {
			if !tm.Stop() || tm.Stop() {
				t.Error("Stop of a pending timer: want true, then false")
			}
			if tm.Reset(time.Minute) || !tm.Reset(2*time.Hour) || !tm.Reset(time.Hour) {
				t.Error("Reset: want false when stopped, then true")
			}
		}
		e.Sleep(time.Hour - 1)
		synctest.Wait()
		if fired.Load() != 0 || len(c.C()) != 0 {
			t.Error("fired a nanosecond early")
		}
		e.Sleep(1)
		synctest.Wait()
		if fired.Load() != 1 {
			t.Errorf("fired %d times when due, want once", fired.Load())
		}
		if f.Stop() {
			t.Error("Stop of a timer that fired = true")
		}
		// Nobody has received from the other one.
		if !c.Stop() {
			t.Error("Stop of a timer from which nobody has received = false")
		}
		select {
		case v := <-c.C():
			t.Errorf("received %v after Stop", v)
		default:
		}
		start := time.Now()
		c.Reset(year)
		<-c.C()
		wantPassed(t, "a timer fired that was reset", start, year)
	})
}

func TestBubbleTicker(t *testing.T) {
	bubbles(t, func(t *testing.T, e suite.Engine) {
		tk := e.NewTicker(time.Minute)
		start := time.Now()
		for k := range 5 {
			<-tk.C()
			wantPassed(t, "a tick came", start, time.Duration(k+1)*time.Minute)
		}
		// Half way into the next interval.
		e.Sleep(30 * time.Second)
		tk.Reset(time.Hour)
		start = time.Now()
		<-tk.C()
		wantPassed(t, "the first tick after Reset came", start, time.Hour)
		tk.Stop()
		e.Sleep(year)
		select {
		case v := <-tk.C():
			t.Errorf("tick %v after Stop", v)
		default:
		}
		c, start := e.Tick(time.Second), time.Now()
		for k := range 3 {
			<-c
			wantPassed(t, "a tick of Tick came", start, time.Duration(k+1)*time.Second)
		}
	})
}

func TestBubbleFarAhead(t *testing.T) {
	bubbles(t, func(t *testing.T, e suite.Engine) {
		never := e.AfterFunc(math.MaxInt64, func() { t.Error("1<<63-1 fired") })
		start := time.Now()
		for range 30 {
			e.Sleep(year)
		}
		wantPassed(t, "30 years of sleep ended", start, 30*year)
		start = time.Now()
		<-e.After(1500 * time.Microsecond)
		wantPassed(t, "After fired", start, 1500*time.Microsecond)
		if !never.Stop() {
			t.Error("Stop of a timer of 1<<63-1 = false")
		}
	})
}

func TestBubbleClose(t *testing.T) {
	for _, way := range []string{"pending", "sleeping", "ticking"} {
		t.Run(way, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, err := timer.New(nil)
				if err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				switch way {
				case "pending":
					s.AfterFunc(time.Hour, func() { t.Error("fired after Close") })
					c := s.NewTimer(time.Hour).C
					if err := s.Close(); err != nil {
						t.Errorf("Close: %v", err)
					}
					time.Sleep(2 * time.Hour)
					select {
					case <-c:
						t.Error("received after Close")
					default:
					}
				case "sleeping":
					done := make(chan struct{})
					go func() { s.Sleep(year); close(done) }()
					synctest.Wait()
					if err := s.Close(); err != nil {
						t.Errorf("Close: %v", err)
					}
					// The bubble's clock ends it: Close may be called from anywhere,
					// and nothing of another bubble may be touched.
					<-done
					wantPassed(t, "a Sleep beside Close", start, year)
				case "ticking":
					tk := s.NewTicker(time.Minute)
					<-tk.C
					if err := s.Close(); err != nil {
						t.Errorf("Close: %v", err)
					}
					time.Sleep(time.Hour)
					select {
					case <-tk.C:
						t.Error("tick after Close")
					default:
					}
				}
				wantClosed(t, "AfterFunc", func() { s.AfterFunc(0, func() {}) })
			})
		})
	}
}

// What was made outside goes on in real time while a bubble runs through years.
func TestBubbleOutside(t *testing.T) {
	s := mustNew(t, nil)
	for _, e := range []suite.Engine{functions(), service("new", s)} {
		start := time.Now()
		fired := make(chan time.Duration, 1)
		e.AfterFunc(50*time.Millisecond, func() { fired <- time.Since(start) })
		far, near := e.NewTimer(time.Hour), e.NewTimer(time.Hour)
		synctest.Test(t, func(t *testing.T) {
			for range 100 {
				e.Sleep(year)
			}
			if !far.Stop() {
				t.Error("Stop in a bubble, of a pending timer made outside = false")
			}
		})
		if d := suite.Await(t, "a timer made outside a bubble fired", fired); d < 50*time.Millisecond {
			t.Errorf("fired early, after %v", d)
		}
		start = time.Now()
		if !near.Reset(5 * time.Millisecond) {
			t.Error("Reset of a pending timer after a bubble = false")
		}
		if v := suite.Await(t, "a timer reset after a bubble fired", near.C()); v.Sub(start) < 5*time.Millisecond {
			t.Errorf("fired early, after %v", v.Sub(start))
		}
	}
}
