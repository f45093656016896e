package timer_test

import (
	"context"
	"errors"
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

// contextSleeps are the two ways to sleep with a context.
func contextSleeps(s *timer.Service) map[string]func(context.Context, time.Duration) error {
	return map[string]func(context.Context, time.Duration) error{
		"SleepContext": s.SleepContext,
		"SleepUntilContext": func(ctx context.Context, d time.Duration) error {
			return s.SleepUntilContext(ctx, time.Now().Add(d))
		},
	}
}

// ended reports an error unless a sleep of d that began at start had the result
// that its context, and the time, allow.
func ended(t testing.TB, ctx context.Context, start time.Time, d time.Duration, err error) {
	t.Helper()
	switch passed := time.Since(start); {
	case err == nil && passed < d:
		t.Errorf("a sleep of %v ended after %v", d, passed)
	case err != nil && ctx.Err() == nil:
		t.Errorf("a sleep ended with %v, and its context is not done", err)
	case err != nil && err != context.Cause(ctx):
		t.Errorf("a sleep ended with %v, the context's cause is %v", err, context.Cause(ctx))
	}
}

func TestSleepContext(t *testing.T) {
	eachService(t, func(t *testing.T, open func() *timer.Service) {
		s := open()
		defer closes(t, s)
		live, cancel := context.WithCancel(context.Background())
		defer cancel()
		done, end := context.WithCancelCause(context.Background())
		why := errors.New("why")
		end(why)
		for name, sleep := range contextSleeps(s) {
			for _, ctx := range []context.Context{context.Background(), live} {
				for _, d := range []time.Duration{-1 << 63, -1, 0, 1, time.Microsecond, 100 * time.Microsecond, 3 * time.Millisecond} {
					start := time.Now()
					if err := sleep(ctx, d); err != nil {
						t.Errorf("%s(%v) = %v", name, d, err)
					}
					ended(t, ctx, start, d, nil)
				}
			}
			for _, d := range []time.Duration{-1, 0, time.Hour, 1<<63 - 1} {
				if err := sleep(done, d); err != why {
					t.Errorf("%s(%v) with a context that is done = %v, want its cause", name, d, err)
				}
			}
		}
	})
}

// Sleeps end when their context does, with its cause, whatever kind it is.
func TestSleepContextCanceled(t *testing.T) {
	s := mustNew(t, nil)
	why := errors.New("why")
	kinds := map[string]func() (context.Context, func()){
		"cancel": func() (context.Context, func()) { return context.WithCancel(context.Background()) },
		"cause": func() (context.Context, func()) {
			ctx, cancel := context.WithCancelCause(context.Background())
			return ctx, func() { cancel(why) }
		},
		"deadline": func() (context.Context, func()) {
			ctx, cancel := s.WithTimeoutCause(context.Background(), 5*time.Millisecond, why)
			context.AfterFunc(ctx, cancel)
			return ctx, func() {}
		},
		"foreign": func() (context.Context, func()) {
			f := &plainContext{Context: context.Background(), done: make(chan struct{})}
			return f, f.end
		},
	}
	for kind, open := range kinds {
		for name, sleep := range contextSleeps(s) {
			for _, d := range []time.Duration{time.Hour, 1<<63 - 1} {
				ctx, cancel := open()
				result := make(chan error, 1)
				go func() { result <- sleep(ctx, d) }()
				time.Sleep(time.Duration(rand.IntN(2)) * time.Millisecond)
				cancel()
				if err := suite.Await(t, name+" returned when its context was done", result); err == nil || err != context.Cause(ctx) {
					t.Errorf("%s, %s: %v, want %v", kind, name, err, context.Cause(ctx))
				}
			}
		}
	}
	suite.Eventually(t, "nothing is pending", func() bool { return s.Stats().Pending == 0 })
}

var errPlain = errors.New("plain")

// plainContext is a context that is not of package context.
type plainContext struct {
	context.Context
	done  chan struct{}
	ended atomic.Bool
}

func (f *plainContext) end()                  { f.ended.Store(true); close(f.done) }
func (f *plainContext) Done() <-chan struct{} { return f.done }
func (f *plainContext) Err() error {
	if f.ended.Load() {
		return errPlain
	}
	return nil
}

// Contexts end just when the sleeps do. Sleepers are used again: a wake-up that
// one sleep has left behind would make a later one early.
func TestSleepContextRace(t *testing.T) {
	eachService(t, func(t *testing.T, open func() *timer.Service) {
		s := open()
		defer closes(t, s)
		var canceled, slept atomic.Int64
		var wg sync.WaitGroup
		for range 4 * runtime.GOMAXPROCS(0) {
			wg.Go(func() {
				for range suite.Scale(300) {
					d := time.Duration(rand.IntN(200)) * time.Microsecond
					ctx, cancel := context.WithCancel(context.Background())
					other := s.AfterFunc(time.Duration(rand.IntN(200))*time.Microsecond, cancel)
					start := time.Now()
					err := s.SleepContext(ctx, d)
					ended(t, ctx, start, d, err)
					if err != nil {
						canceled.Add(1)
					} else {
						slept.Add(1)
					}
					other.Stop()
					cancel()

					start = time.Now()
					s.Sleep(50 * time.Microsecond)
					if passed := time.Since(start); passed < 50*time.Microsecond {
						t.Errorf("a sleep of 50us ended after %v", passed)
					}
				}
			})
		}
		done := make(chan struct{})
		go func() { wg.Wait(); close(done) }()
		suite.Await(t, "the sleeps ended", done)
		if n := s.Stats().Pending; n != 0 {
			t.Errorf("%d pending", n)
		}
		t.Logf("%d slept, %d canceled", slept.Load(), canceled.Load())
	})
}

// Close ends sleeps, which tell so unless their time has come or their context is
// done as well.
func TestSleepContextClose(t *testing.T) {
	eachService(t, func(t *testing.T, open func() *timer.Service) {
		for range suite.Scale(20) {
			const n = 16
			s := open()
			ctx, cancel := context.WithCancel(context.Background())
			type end struct {
				start time.Time
				err   error
			}
			ends := make(chan end, n)
			for k := range n {
				c := ctx
				if k%2 == 0 {
					c = context.Background()
				}
				go func() {
					// One that has not yet begun when the service closes panics.
					defer func() {
						if recover() != nil {
							ends <- end{time.Now(), timer.ErrClosed}
						}
					}()
					start := time.Now()
					err := s.SleepContext(c, time.Hour)
					ends <- end{start, err}
				}()
			}
			time.Sleep(time.Duration(rand.IntN(2)) * time.Millisecond)
			go cancel()
			closes(t, s)
			for range n {
				e := suite.Await(t, "a sleep ended at Close", ends)
				switch e.err {
				case timer.ErrClosed, context.Canceled:
				case nil:
					if time.Since(e.start) < time.Hour {
						t.Error("a sleep of an hour said that it was over")
					}
				default:
					t.Errorf("a sleep ended with %v", e.err)
				}
			}
			wantClosed(t, "SleepContext", func() { _ = s.SleepContext(context.Background(), time.Hour) })
			wantClosed(t, "SleepUntil", func() { s.SleepUntil(time.Now().Add(time.Hour)) })
			wantClosed(t, "SleepUntilContext", func() {
				_ = s.SleepUntilContext(context.Background(), time.Now().Add(time.Hour))
			})
			cancel()
			if err := s.SleepContext(ctx, 0); err != context.Canceled {
				t.Errorf("SleepContext with a context that is done, after Close = %v", err)
			}
		}
	})
}

func TestSleepContextMisuse(t *testing.T) {
	for name, sleep := range contextSleeps(timer.Default()) {
		func() {
			defer func() {
				if got, want := recover(), "timer: "+name+" called with a nil Context"; got != want {
					t.Errorf("%s(nil): panic value %v, want %q", name, got, want)
				}
			}()
			_ = sleep(nil, 0) //nolint:staticcheck // on purpose
		}()
	}
}

func TestSleepContextAllocs(t *testing.T) {
	s := mustNew(t, nil)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for name, sleep := range contextSleeps(s) {
		allocatesNothing(t, name, func() { _ = sleep(ctx, 20*time.Microsecond) })
	}
}

// allocatesNothing checks that f, and what the engine does for it, allocates
// nothing in a steady state. What is done once in a while, like looking for the
// reason why a timer was very late, has attempts enough to stay out of one.
func allocatesNothing(t *testing.T, what string, f func()) {
	t.Helper()
	if runtime.GOOS == "js" {
		t.Skip("the runtime allocates for each wait")
	}
	n := testing.AllocsPerRun(100, f)
	for attempt := 0; n != 0 && attempt < 50; attempt++ {
		n = testing.AllocsPerRun(100, f)
	}
	if n != 0 {
		t.Errorf("%s allocates %v times", what, n)
	}
}

func TestBubbleSleepContext(t *testing.T) {
	outside := mustNew(t, nil)
	synctest.Test(t, func(t *testing.T) {
		inside := mustNew(t, nil)
		for _, s := range []*timer.Service{timer.Default(), outside, inside} {
			for name, sleep := range contextSleeps(s) {
				for _, ctx := range []context.Context{context.Background(), t.Context()} {
					start := time.Now()
					if err := sleep(ctx, year); err != nil {
						t.Errorf("%s = %v", name, err)
					}
					wantPassed(t, name+" returned", start, year)
					if err := sleep(ctx, -year); err != nil {
						t.Errorf("%s = %v", name, err)
					}
				}
				ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
				start := time.Now()
				if err := sleep(ctx, year); err != context.DeadlineExceeded {
					t.Errorf("%s = %v, want its context's cause", name, err)
				}
				wantPassed(t, name+" returned", start, time.Hour)
				cancel()
			}
		}
	})
}
