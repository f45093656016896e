package timer_test

import (
	"context"
	"errors"
	"math"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/detent-go/detent/internal/suite"
	"github.com/detent-go/detent/timer"
)

// otherClocks are the clocks but the default.
var otherClocks = []timer.Clock{timer.Boottime, timer.Realtime}

// eachClock runs a test for each of them that there is.
func eachClock(t *testing.T, test func(t *testing.T, c timer.Clock)) {
	for _, c := range otherClocks {
		t.Run(c.String(), func(t *testing.T) {
			if _, err := timer.New(&timer.Options{Clock: c}); errors.Is(err, errors.ErrUnsupported) {
				t.Skip(err)
			}
			test(t, c)
		})
	}
}

func TestClockOptions(t *testing.T) {
	onSet := func(time.Duration) {}
	for _, o := range []timer.Options{
		{Clock: -1}, {Clock: timer.Realtime + 1},
		{OnClockSet: onSet}, {Clock: timer.Boottime, OnClockSet: onSet},
	} {
		if s, err := timer.New(&o); s != nil || err == nil || !strings.HasPrefix(err.Error(), "timer: Options.") {
			t.Errorf("New(%+v) = %v, %v", o, s, err)
		}
	}
	s, err := timer.New(&timer.Options{Clock: timer.Boottime})
	switch {
	case portable || runtime.GOOS != "linux":
		if s != nil || !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("New on CLOCK_BOOTTIME = %v, %v, want an ErrUnsupported", s, err)
		}
	case err != nil:
		t.Error(err)
	}
	if s, err := timer.New(&timer.Options{Clock: timer.Realtime, OnClockSet: onSet}); err != nil {
		t.Error(err)
	} else if err := s.Close(); err != nil { // without a timer
		t.Error(err)
	}
	for c, want := range map[timer.Clock]string{timer.Monotonic: "Monotonic", timer.Realtime: "Realtime", 9: "Clock(9)"} {
		if c.String() != want {
			t.Errorf("String = %q, want %q", c.String(), want)
		}
	}
}

// Deadlines are times of the service's clock, whatever readings they have.
func TestClockDeadlines(t *testing.T) {
	eachClock(t, func(t *testing.T, c timer.Clock) {
		s := mustNewOn(t, c)
		const d = 5 * time.Millisecond
		for name, of := range map[string]func(time.Time) time.Time{
			"with":    func(t time.Time) time.Time { return t },
			"without": func(t time.Time) time.Time { return t.Round(0) },
		} {
			t.Run(name+" a monotonic reading", func(t *testing.T) {
				check := func(what string, start time.Time) {
					t.Helper()
					now := time.Now()
					if c == timer.Realtime || of(start) == start.Round(0) {
						// Its two readings are not of the same moment.
						now, start = now.Round(0), start.Round(0)
					}
					if now.Sub(start) < d {
						t.Errorf("%s: %v early", what, d-now.Sub(start))
					}
				}
				start := time.Now()
				s.SleepUntil(of(start.Add(d)))
				check("SleepUntil", start)

				start = time.Now()
				at := make(chan time.Time, 1)
				s.AfterFuncAt(of(start.Add(d)), func() { at <- time.Now() })
				suite.Await(t, "AfterFuncAt called", at)
				check("AfterFuncAt", start)

				start = time.Now()
				tm := s.NewTimer(time.Hour)
				if !tm.ResetAt(of(start.Add(d))) {
					t.Error("ResetAt = false")
				}
				suite.Await(t, "ResetAt fired", tm.C)
				check("ResetAt", start)

				start = time.Now()
				ctx, cancel := s.WithDeadline(context.Background(), of(start.Add(d)))
				defer cancel()
				suite.Await(t, "the context is done", ctx.Done())
				check("WithDeadline", start)
				if got, ok := ctx.Deadline(); !ok || got != of(start.Add(d)) {
					t.Errorf("Deadline = %v, %v", got, ok)
				}

				start = time.Now()
				delivered := make(chan int, 2)
				q := timer.NewQueue(s, func(b []timer.Expired[int]) { delivered <- b[0].Value })
				q.AddAt(of(start.Add(d)), 1)
				suite.Await(t, "the queue delivered", delivered)
				check("Queue", start)

				polled := timer.NewQueue[int](s, nil)
				start = time.Now()
				polled.AddAt(of(start.Add(d)), 1)
				next, ok := polled.Next()
				if !ok || next.Sub(start).Abs() > time.Minute {
					t.Errorf("Next = %v, %v at %v", next, ok, start)
				}
				buf := make([]timer.Expired[int], 1)
				for polled.Poll(buf) == 0 {
					runtime.Gosched()
				}
				check("Poll", start)
			})
		}
		// Times out of reach.
		for _, far := range []time.Time{time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), time.Now().Add(math.MaxInt64)} {
			tm := s.NewTimerAt(far)
			if !tm.Stop() {
				t.Errorf("a timer at %v has fired", far)
			}
		}
		for _, past := range []time.Time{{}, time.Unix(0, 0), time.Date(1500, 1, 1, 0, 0, 0, 0, time.UTC)} {
			suite.Await(t, "a timer in the past fired", s.NewTimerAt(past).C)
			s.SleepUntil(past)
		}
		if now := s.Now(); (now == now.Round(0)) != (c == timer.Realtime) || time.Since(now).Abs() > time.Minute {
			t.Errorf("Now = %v", now)
		}
	})
}

// A sleep that spins its last stretch is not early either.
func TestClockSpin(t *testing.T) {
	eachClock(t, func(t *testing.T, c timer.Clock) {
		if c == timer.Realtime {
			wantSteadyWall(t)
		}
		s := mustNewOn(t, c).WithSpin()
		for range 50 {
			start := time.Now()
			s.Sleep(200 * time.Microsecond)
			if d := time.Since(start); d < 200*time.Microsecond {
				t.Errorf("slept %v", d)
			}
		}
	})
}

// In a bubble the timers of these services are on the bubble's time, too.
func TestClockBubble(t *testing.T) {
	eachClock(t, func(t *testing.T, c timer.Clock) {
		s := mustNewOn(t, c)
		outside := s.NewTimer(time.Hour)
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			s.Sleep(time.Hour)
			s.SleepUntil(start.Add(2 * time.Hour))
			ctx, cancel := s.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			<-ctx.Done()
			<-s.NewTimer(time.Hour).C
			<-s.NewTimerAt(start.Add(5 * time.Hour)).C
			var fired atomic.Bool
			s.AfterFunc(time.Hour, func() { fired.Store(true) })
			q := timer.NewQueue(s, func([]timer.Expired[int]) {})
			q.AddAt(start.Add(6*time.Hour), 1)
			time.Sleep(time.Hour)
			synctest.Wait()
			if d := time.Since(start); d != 6*time.Hour || !fired.Load() || q.Len() != 0 {
				t.Errorf("after %v: fired %v, %d in the queue", d, fired.Load(), q.Len())
			}
			wantPanic(t, "timer: Reset called in a synctest bubble on a Timer made outside", func() { outside.Reset(1) })
		})
		if st := s.Stats(); st.Started != 1 {
			t.Errorf("%d timers counted, want that outside alone", st.Started)
		}
	})
}

// Close leaves nothing, whatever there was.
func TestClockClose(t *testing.T) {
	eachClock(t, func(t *testing.T, c timer.Clock) {
		timer.Sleep(time.Microsecond) // so that what the process needs is there
		before := runtime.NumGoroutine()
		for range 10 {
			o := timer.Options{Clock: c, Shards: 2}
			if c == timer.Realtime {
				o.OnClockSet = func(time.Duration) {}
			}
			s, err := timer.New(&o)
			if err != nil {
				t.Fatal(err)
			}
			s.AfterFunc(time.Hour, func() { t.Error("called") })
			tk := s.NewTicker(time.Millisecond)
			s.Sleep(time.Microsecond)
			suite.Await(t, "a tick", tk.C)
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
		for k := 0; runtime.NumGoroutine() > before; k++ {
			if k > 10_000 {
				t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
			}
			time.Sleep(time.Millisecond)
		}
	})
}

// BenchmarkClock is a timer that is started and stopped at once.
func BenchmarkClock(b *testing.B) {
	for _, c := range append([]timer.Clock{timer.Monotonic}, otherClocks...) {
		b.Run(c.String(), func(b *testing.B) {
			s := mustNewOn(b, c)
			for b.Loop() {
				s.AfterFunc(30*time.Second, func() {}).Stop()
			}
		})
	}
}
