package timer_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/detent-go/detent/internal/suite"
	"github.com/detent-go/detent/timer"
)

// tickFaces are the ways to take ticks, each as a function that calls work for n of
// them and returns.
var tickFaces = map[string]func(s *timer.Service, d time.Duration, o *timer.TickOptions, n int, work func(timer.Ticked)){
	"Wait": func(s *timer.Service, d time.Duration, o *timer.TickOptions, n int, work func(timer.Ticked)) {
		iv := s.NewInterval(d, o)
		for range n {
			tick, err := iv.Wait(context.Background())
			if err != nil {
				panic(err)
			}
			work(tick)
		}
	},
	"Ticks": func(s *timer.Service, d time.Duration, o *timer.TickOptions, n int, work func(timer.Ticked)) {
		for tick := range s.NewInterval(d, o).Ticks(context.Background()) {
			work(tick)
			if n--; n == 0 {
				return
			}
		}
	},
	"Take": func(s *timer.Service, d time.Duration, o *timer.TickOptions, n int, work func(timer.Ticked)) {
		iv := s.NewInterval(d, o)
		for other := make(chan int); n > 0; {
			select {
			case <-iv.C():
				if tick, ok := iv.Take(); ok {
					work(tick)
					n--
				}
			case <-other:
			}
		}
	},
	"TickFunc": func(s *timer.Service, d time.Duration, o *timer.TickOptions, n int, work func(timer.Ticked)) {
		done := make(chan struct{})
		var iv *timer.Interval
		var mu sync.Mutex
		mu.Lock()
		iv = s.TickFunc(d, func(tick timer.Ticked) {
			mu.Lock() // until iv is there
			defer mu.Unlock()
			if n == 0 {
				panic("called after Stop")
			}
			work(tick)
			if n--; n == 0 {
				iv.Stop()
				close(done)
			}
		}, o)
		mu.Unlock()
		<-done
	},
}

// taken is one tick as it was taken: by how much its time, and its taking, came
// after the start.
type taken struct {
	at, when time.Duration
	missed   int64
}

func (t taken) String() string { return fmt.Sprintf("%v at %v missed %d", t.at, t.when, t.missed) }

const ms = time.Millisecond

// The example of the documentation: a period of 10 ms, and 35 ms of work after the
// first tick.
func TestBubbleMissed(t *testing.T) {
	outside := mustNew(t, nil)
	for name, face := range tickFaces {
		for _, c := range []struct {
			o    *timer.TickOptions
			want []taken
		}{
			{nil, []taken{{10 * ms, 10 * ms, 0}, {20 * ms, 45 * ms, 0}, {50 * ms, 50 * ms, 2}, {60 * ms, 60 * ms, 0}}},
			{&timer.TickOptions{Missed: timer.Burst}, []taken{
				{10 * ms, 10 * ms, 0}, {20 * ms, 45 * ms, 0}, {30 * ms, 45 * ms, 0}, {40 * ms, 45 * ms, 0}, {50 * ms, 50 * ms, 0},
			}},
			{&timer.TickOptions{Missed: timer.Delay}, []taken{
				{10 * ms, 10 * ms, 0}, {20 * ms, 45 * ms, 0}, {55 * ms, 55 * ms, 2}, {65 * ms, 65 * ms, 0},
			}},
			{&timer.TickOptions{Immediately: true}, []taken{{0, 0, 0}, {10 * ms, 35 * ms, 0}, {40 * ms, 40 * ms, 2}}},
			{&timer.TickOptions{Aligned: true}, []taken{{10 * ms, 10 * ms, 0}, {20 * ms, 45 * ms, 0}, {50 * ms, 50 * ms, 2}}},
			{&timer.TickOptions{Aligned: true, Missed: timer.Burst, Offset: 3 * ms}, []taken{
				{3 * ms, 3 * ms, 0}, {13 * ms, 38 * ms, 0}, {23 * ms, 38 * ms, 0}, {33 * ms, 38 * ms, 0}, {43 * ms, 43 * ms, 0},
			}},
		} {
			synctest.Test(t, func(t *testing.T) {
				for _, s := range []*timer.Service{timer.Default(), outside, mustNew(t, nil)} {
					start := time.Now()
					var got []taken
					face(s, 10*ms, c.o, len(c.want), func(tick timer.Ticked) {
						got = append(got, taken{tick.At.Sub(start), time.Since(start), tick.Missed})
						if len(got) == 1 {
							time.Sleep(35 * ms)
						}
					})
					if fmt.Sprint(got) != fmt.Sprint(c.want) {
						t.Errorf("%s, %+v:\n%v, want\n%v", name, c.o, got, c.want)
					}
					// The next ones start on a multiple of the period again.
					time.Sleep(time.Until(time.Now().Truncate(10 * ms).Add(10 * ms)))
				}
			})
		}
	}
}

// Every 15 seconds on the quarter, for as long as a bubble takes no time.
func TestBubbleAligned(t *testing.T) {
	for name, face := range tickFaces {
		for _, d := range []time.Duration{15 * time.Second, time.Minute, time.Hour, 24 * time.Hour, 7 * time.Hour} {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(12345 * time.Millisecond)
				want := time.Now().Truncate(d)
				face(timer.Default(), d, &timer.TickOptions{Aligned: true}, 20, func(tick timer.Ticked) {
					want = want.Add(d)
					if !tick.At.Equal(want) || !time.Now().Equal(want) || tick.Missed != 0 {
						t.Errorf("%s: %v at %v, want %v", name, tick, time.Now(), want)
					}
				})
			})
		}
	}
}

func TestBubbleInterval(t *testing.T) {
	out := timer.NewInterval(time.Hour, nil)
	f := timer.TickFunc(time.Hour, func(timer.Ticked) { t.Error("an hour has passed") }, nil)
	synctest.Test(t, func(t *testing.T) {
		for op, call := range map[string]func(){
			"C":     func() { out.C() },
			"Take":  func() { out.Take() },
			"Wait":  func() { _, _ = out.Wait(t.Context()) },
			"Reset": func() { out.Reset(time.Hour) },
		} {
			wantPanic(t, "timer: "+op+" called in a synctest bubble on an Interval made outside", call)
		}
		out.Stop()
		f.Stop()

		iv := timer.NewInterval(time.Hour, nil)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		start := time.Now()
		if _, err := iv.Wait(ctx); err != context.DeadlineExceeded {
			t.Errorf("Wait with a context that ends = %v", err)
		}
		wantPassed(t, "Wait returned", start, time.Minute)
		go func() {
			time.Sleep(time.Minute)
			iv.Stop()
			time.Sleep(year)
			iv.Reset(time.Second)
		}()
		if _, err := iv.Wait(t.Context()); err != nil {
			t.Errorf("Wait = %v", err)
		}
		wantPassed(t, "a tick came, after Stop and Reset", start, 2*time.Minute+year+time.Second)
	})
}

// On virtual time the ticks of a month come when they are due, to the nanosecond.
func TestManualInterval(t *testing.T) {
	m, err := timer.NewManual(dawn, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []*timer.TickOptions{nil, {Aligned: true}, {Aligned: true, Offset: 5 * time.Minute, Missed: timer.Burst}} {
		m.Advance(12345 * time.Millisecond)
		start := m.Now()
		want := start.Add(time.Hour)
		if o != nil {
			want = start.Add(-o.Offset).Truncate(time.Hour).Add(o.Offset + time.Hour)
		}
		calls := 0
		iv := m.TickFunc(time.Hour, func(tick timer.Ticked) {
			if !tick.At.Equal(want) || !m.Now().Equal(want) || tick.Missed != 0 {
				t.Errorf("%v at %v, want %v", tick, m.Now(), want)
			}
			want = want.Add(time.Hour)
			calls++
		}, o)
		m.Advance(30 * 24 * time.Hour)
		iv.Stop()
		if calls != 30*24 {
			t.Errorf("%d ticks in a month, want %d", calls, 30*24)
		}
	}
	// A goroutine that has to come to run for each tick, and is waited for.
	ctx, cancel := context.WithCancel(t.Context())
	var n, missed atomic.Int64
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for tick := range m.NewInterval(time.Second, nil).Ticks(ctx) {
			n.Add(1)
			missed.Add(tick.Missed)
		}
	}()
	if err := m.AwaitPending(ctx, 1); err != nil {
		t.Fatal(err)
	}
	if m.Run(time.Minute) && n.Load() != 60 || n.Load()+missed.Load() > 60 {
		t.Errorf("%d ticks in a minute, %d missed, want 60", n.Load(), missed.Load())
	}
	cancel()
	suite.Await(t, "the goroutine ended", ended)
}

// No tick is taken before its time, and their times are those of the schedule.
func TestIntervalSchedule(t *testing.T) {
	eachService(t, func(t *testing.T, open func() *timer.Service) {
		s := open()
		defer closes(t, s)
		for name, face := range tickFaces {
			for _, view := range []*timer.Service{s, s.WithSlack(0), s.WithSpin()} {
				for _, d := range []time.Duration{1, 100 * time.Microsecond, ms, 3 * ms} {
					for _, missed := range []timer.MissedTicks{timer.Skip, timer.Burst, timer.Delay} {
						start := time.Now()
						last := start
						// Of the start of the schedule is known only that it lies here.
						var latest time.Time
						done := make(chan struct{})
						go func() {
							defer close(done)
							face(view, d, &timer.TickOptions{Missed: missed}, 5, func(tick timer.Ticked) {
								now := time.Now()
								gap := tick.At.Sub(last)
								switch {
								case now.Before(tick.At):
									t.Errorf("%s: a tick was taken %v before its time", name, tick.At.Sub(now))
								case latest.IsZero():
									if gap < d {
										t.Errorf("%s: the first tick is of %v after the start, period %v", name, gap, d)
									}
								case missed == timer.Burst && (gap != d || tick.Missed != 0),
									missed == timer.Skip && gap != time.Duration(tick.Missed+1)*d,
									missed == timer.Delay && gap < d:
									t.Errorf("%s, %d: the tick is %v after the one before, missed %d, period %v", name, missed, gap, tick.Missed, d)
								}
								last, latest = tick.At, now
							})
						}()
						suite.Await(t, name+": the ticks came", done)
					}
				}
			}
		}
		suite.Eventually(t, "nothing is pending", func() bool { return s.Stats().Pending == 0 })
	})
}

// Ticks that are aligned come at multiples of their period by the wall clock.
func TestIntervalAligned(t *testing.T) {
	s := mustNew(t, nil)
	for name, face := range tickFaces {
		for _, offset := range []time.Duration{0, ms, -ms} {
			done := make(chan struct{})
			go func() {
				defer close(done)
				before := time.Now()
				face(s, 10*ms, &timer.TickOptions{Aligned: true, Offset: offset}, 5, func(tick timer.Ticked) {
					now := time.Now()
					if at := tick.At.Add(-offset); !at.Equal(at.Truncate(10 * ms)) {
						t.Errorf("%s: tick of %v", name, tick.At)
					}
					if step := now.Round(0).Sub(before.Round(0)) - now.Sub(before); step.Abs() > 100*time.Microsecond {
						t.Logf("the wall clock was set by %v", step)
					} else if early := tick.At.Sub(now.Round(0)); early > 0 {
						t.Errorf("%s: %v early", name, early)
					}
				})
			}()
			suite.Await(t, name+": the ticks came", done)
		}
	}
}

// Whoever takes them, each tick is taken once.
func TestIntervalOnce(t *testing.T) {
	eachService(t, func(t *testing.T, open func() *timer.Service) {
		s := open()
		defer closes(t, s)
		for _, d := range []time.Duration{time.Microsecond, 100 * time.Microsecond} {
			iv := s.NewInterval(d, &timer.TickOptions{Missed: timer.Burst})
			ctx, cancel := context.WithCancel(context.Background())
			var mu sync.Mutex
			seen := make(map[time.Time]bool)
			n := suite.Scale(2000)
			note := func(tick timer.Ticked) {
				now := time.Now()
				mu.Lock()
				defer mu.Unlock()
				if now.Before(tick.At) || seen[tick.At] {
					t.Errorf("tick of %v taken at %v, before: %v", tick.At, now, seen[tick.At])
				}
				if seen[tick.At] = true; len(seen) == n {
					cancel()
				}
			}
			var wg sync.WaitGroup
			for g := range 6 {
				wg.Go(func() {
					for ctx.Err() == nil {
						switch g % 3 {
						case 0:
							if tick, err := iv.Wait(ctx); err == nil {
								note(tick)
							}
						case 1:
							select {
							case <-iv.C():
								if tick, ok := iv.Take(); ok {
									note(tick)
								}
							case <-ctx.Done():
							}
						default:
							for tick := range iv.Ticks(ctx) {
								note(tick)
								runtime.Gosched()
							}
						}
					}
				})
			}
			done := make(chan struct{})
			go func() { wg.Wait(); close(done) }()
			suite.Await(t, "the ticks were taken", done)
			// Bursts leave no gap: as many as there are between the first and the last.
			first, last := time.Now().Add(time.Hour), time.Time{}
			for at := range seen {
				if at.Before(first) {
					first = at
				}
				if at.After(last) {
					last = at
				}
			}
			if want := int(last.Sub(first)/d) + 1; len(seen) != want {
				t.Errorf("%d ticks from %v to %v, want %d", len(seen), first, last, want)
			}
		}
	})
}

// Reset reaches whoever waits, in every way; Stop leaves nothing to take.
func TestIntervalReset(t *testing.T) {
	eachService(t, func(t *testing.T, open func() *timer.Service) {
		s := open()
		defer closes(t, s)
		for _, aligned := range []bool{false, true} {
			for range suite.Scale(20) {
				o := &timer.TickOptions{Aligned: aligned}
				iv, sel := s.NewInterval(time.Hour, o), s.NewInterval(time.Hour, o)
				got := make(chan timer.Ticked, 2)
				go func() {
					if tick, err := iv.Wait(context.Background()); err == nil {
						got <- tick
					}
				}()
				c := sel.C()
				called := make(chan timer.Ticked, 100)
				f := s.TickFunc(time.Hour, func(tick timer.Ticked) { called <- tick }, o)
				time.Sleep(time.Duration(rand.IntN(500)) * time.Microsecond)
				start := time.Now()
				d := time.Duration(rand.IntN(2000)+1) * time.Microsecond
				for _, iv := range []*timer.Interval{iv, sel, f} {
					iv.Reset(d)
				}
				check := func(what string, tick timer.Ticked) {
					t.Helper()
					now := time.Now()
					if early := start.Add(d).Sub(now); !aligned && (early > 0 || tick.At.Before(start.Add(d))) {
						t.Errorf("%s: reset to %v, tick of %v after, %v early", what, d, tick.At.Sub(start), early)
					}
				}
				check("Wait", suite.Await(t, "a tick came after Reset", got))
				check("TickFunc", suite.Await(t, "a tick came after Reset", called))
				f.Stop()
				if c != sel.C() {
					t.Error("C is another channel after Reset")
				}
				suite.Await(t, "C told of a tick after Reset", sel.C())
				suite.Eventually(t, "the tick can be taken", func() bool {
					tick, ok := sel.Take()
					if ok {
						check("Take", tick)
					}
					return ok
				})
				// Nothing is left of a tick that has come, after Stop.
				sel.C()
				time.Sleep(time.Duration(rand.IntN(2)) * ms)
				sel.Stop()
				select {
				case <-sel.C():
					t.Error("C tells of a tick after Stop")
				default:
				}
				if tick, ok := sel.Take(); ok {
					t.Errorf("Take after Stop returned the tick of %v", tick.At)
				}
				ctx, cancel := context.WithTimeout(context.Background(), ms)
				if _, err := sel.Wait(ctx); err != context.DeadlineExceeded {
					t.Errorf("Wait after Stop = %v", err)
				}
				cancel()
			}
		}
	})
}

// The function of TickFunc does what it likes, and is never called twice at a time.
func TestTickFunc(t *testing.T) {
	eachService(t, func(t *testing.T, open func() *timer.Service) {
		s := open()
		defer closes(t, s)
		var inside, calls atomic.Int64
		var iv atomic.Pointer[timer.Interval]
		ended := make(chan struct{})
		n := int64(suite.Scale(60))
		iv.Store(s.TickFunc(50*time.Microsecond, func(timer.Ticked) {
			if inside.Add(1) != 1 {
				t.Error("called twice at a time")
			}
			defer inside.Add(-1)
			k := calls.Add(1)
			if k%5 == 0 {
				time.Sleep(time.Duration(rand.IntN(1000)) * time.Microsecond)
			}
			iv := iv.Load()
			switch {
			case iv == nil:
			case k == n:
				iv.Stop()
				close(ended)
			case k > n:
				t.Error("called after Stop")
			case k%4 == 1:
				iv.Reset(time.Duration(1 + rand.IntN(100_000)))
			case k%4 == 2:
				iv.Stop()
				iv.Reset(time.Microsecond)
			case k%4 == 3:
				runtime.Goexit()
			}
		}, &timer.TickOptions{Missed: timer.MissedTicks(rand.IntN(3))}))
		// Somebody else resets as well.
		quit := make(chan struct{})
		var others sync.WaitGroup
		others.Go(func() {
			for calls.Load() < n-1 {
				iv.Load().Reset(time.Duration(1 + rand.IntN(100_000)))
				time.Sleep(200 * time.Microsecond)
			}
			close(quit)
		})
		suite.Await(t, "all ticks came", ended)
		suite.Await(t, "the other goroutine ended", quit)
		others.Wait()
		iv.Load().Stop()
		time.Sleep(2 * ms)
		after := calls.Load()
		time.Sleep(2 * ms)
		if calls.Load() != after {
			t.Error("called after Stop")
		}
	})
}

func TestIntervalClose(t *testing.T) {
	eachService(t, func(t *testing.T, open func() *timer.Service) {
		for range suite.Scale(10) {
			s := open()
			iv, due := s.NewInterval(time.Hour, nil), s.NewInterval(1, nil)
			stopped := s.NewInterval(time.Hour, nil)
			stopped.Stop()
			var calls atomic.Int64
			s.TickFunc(20*time.Microsecond, func(timer.Ticked) { calls.Add(1) }, nil)
			errs := make(chan error, 3)
			for _, iv := range []*timer.Interval{iv, iv, stopped} {
				go func() { _, err := iv.Wait(context.Background()); errs <- err }()
			}
			iv.C()
			busy, often := make(chan struct{}), s.NewInterval(10*time.Microsecond, nil)
			go func() {
				defer close(busy)
				for range often.Ticks(context.Background()) {
				}
			}()
			time.Sleep(time.Duration(rand.IntN(1000)) * time.Microsecond)
			closes(t, s)
			for range 3 {
				if err := suite.Await(t, "Wait returned at Close", errs); err != timer.ErrClosed {
					t.Errorf("Wait at Close = %v", err)
				}
			}
			suite.Await(t, "Ticks ended at Close", busy)
			if _, ok := due.Take(); ok {
				t.Error("Take after Close returned a tick")
			}
			if _, err := due.Wait(context.Background()); !errors.Is(err, timer.ErrClosed) {
				t.Errorf("Wait after Close = %v", err)
			}
			due.Stop()
			wantClosed(t, "Reset", func() { due.Reset(time.Hour) })
			wantClosed(t, "NewInterval", func() { s.NewInterval(time.Hour, nil) })
			wantClosed(t, "TickFunc", func() { s.TickFunc(time.Hour, func(timer.Ticked) {}, nil) })
			time.Sleep(ms)
			after := calls.Load()
			time.Sleep(ms)
			if calls.Load() != after {
				t.Error("a function was called after Close")
			}
		}
	})
}

func TestIntervalMisuse(t *testing.T) {
	f := func(timer.Ticked) {}
	hour := time.Hour
	var zero timer.Interval
	for want, call := range map[string]func(){
		"non-positive interval for NewInterval":                      func() { timer.NewInterval(0, nil) },
		"non-positive interval for TickFunc":                         func() { timer.TickFunc(-1, f, nil) },
		"non-positive interval for Interval.Reset":                   func() { timer.NewInterval(hour, nil).Reset(0) },
		"timer: TickFunc called with a nil function":                 func() { timer.TickFunc(hour, nil, nil) },
		"timer: TickOptions.Missed is none of Skip, Burst and Delay": func() { timer.NewInterval(hour, &timer.TickOptions{Missed: 3}) },
		"timer: TickOptions.Offset is for Aligned":                   func() { timer.NewInterval(hour, &timer.TickOptions{Offset: 1}) },
		"timer: Take called on uninitialized Interval":               func() { zero.Take() },
		"timer: C called on uninitialized Interval":                  func() { zero.C() },
		"timer: Wait called on uninitialized Interval":               func() { _, _ = zero.Wait(context.Background()) },
		"timer: Stop called on uninitialized Interval":               func() { zero.Stop() },
		"timer: Reset called on uninitialized Interval":              func() { zero.Reset(hour) },
		"timer: Wait called with a nil Context":                      func() { _, _ = timer.NewInterval(hour, nil).Wait(noContext) },
		"timer: TickOptions.Aligned does not go with Delay": func() {
			timer.NewInterval(hour, &timer.TickOptions{Aligned: true, Missed: timer.Delay})
		},
	} {
		wantPanic(t, want, call)
	}
	iv := timer.TickFunc(hour, f, nil)
	defer iv.Stop()
	for op, call := range map[string]func(){
		"Take": func() { iv.Take() },
		"C":    func() { iv.C() },
		"Wait": func() { _, _ = iv.Wait(context.Background()) },
	} {
		wantPanic(t, "timer: "+op+" called on an Interval of TickFunc", call)
	}
}

func TestIntervalAllocs(t *testing.T) {
	s := mustNew(t, nil)
	for _, o := range []*timer.TickOptions{nil, {Missed: timer.Burst}, {Aligned: true}} {
		iv, ctx := s.NewInterval(100*time.Microsecond, o), context.Background()
		if _, err := iv.Wait(ctx); err != nil {
			t.Error(err)
		}
		allocatesNothing(t, "Wait", func() { _, _ = iv.Wait(ctx) })
		iv.C()
		allocatesNothing(t, "C and Take", func() { <-iv.C(); iv.Take() })
	}
}

// noContext is what a caller has forgotten to set.
var noContext context.Context
