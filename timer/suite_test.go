package timer_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/detent-go/detent/internal/suite"
	"github.com/detent-go/detent/timer"
)

// The suite runs over package time in the suite's own package, which shows it
// to be right; here it runs over every engine of detent.

// TestDefault is the default service, through the package functions.
func TestDefault(t *testing.T) { suite.Run(t, functions()) }

// TestNew is a service as New(nil) makes it: what is short goes into the heap,
// what is long into the wheel.
func TestNew(t *testing.T) {
	suite.Run(t, service("new", mustNew(t, nil)))
}

// TestExact is the heap: nothing may be later than it must.
func TestExact(t *testing.T) {
	e := service("exact", mustNew(t, nil).WithSlack(0))
	e.Heavy = true
	suite.Run(t, e)
}

// TestWheel is the wheel: everything may be later by many ticks.
func TestWheel(t *testing.T) {
	slack := 4 * time.Millisecond
	e := service("wheel", mustNew(t, &timer.Options{Slack: &slack}))
	e.Slack, e.Heavy = slack, true
	suite.Run(t, e)
}

// TestOneShard has every goroutine on the same lock.
func TestOneShard(t *testing.T) {
	suite.Run(t, service("oneShard", mustNew(t, &timer.Options{Shards: 1})))
}

// TestInline runs the callbacks where the timers are fired.
func TestInline(t *testing.T) {
	e := service("inline", mustNew(t, &timer.Options{Callbacks: timer.Inline}))
	e.Lacks[suite.Concurrent] = "Inline callbacks run one after another, so one that waits holds up the others"
	suite.Run(t, e)
}

// TestBlamed has a thread watch the wakers.
func TestBlamed(t *testing.T) {
	suite.Run(t, service("blamed", mustNew(t, &timer.Options{Blame: true})))
}

// TestLane runs the callbacks on the thread that waits for the timers.
func TestLane(t *testing.T) {
	for name, o := range map[string]*timer.LaneOptions{"lane": nil, "spinningLane": {Spin: true}} {
		e := service(name, mustLane(t, o))
		e.Lacks[suite.Concurrent] = "the callbacks of a lane run on its thread, one after another, so one that waits holds up the others"
		suite.Run(t, e)
	}
}

// TestWithSpin spins at the end of each Sleep.
func TestWithSpin(t *testing.T) {
	suite.Run(t, service("spin", mustNew(t, nil).WithSpin()))
}

// mustLane makes a lane that is closed at the end of the test.
func mustLane(t testing.TB, o *timer.LaneOptions) *timer.Service {
	t.Helper()
	s, err := timer.NewLane(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

// TestAbsolute has deadlines instead of durations, wherever there is the choice.
func TestAbsolute(t *testing.T) {
	suite.Run(t, absolute("absolute", mustNew(t, nil)))
}

// TestEmbedded has embedded timers for functions, and sleeps with a context.
func TestEmbedded(t *testing.T) {
	suite.Run(t, embedding("embedded", mustNew(t, nil)))
}

// mustNew makes a service that is closed at the end of the test.
func mustNew(t testing.TB, o *timer.Options) *timer.Service {
	t.Helper()
	s, err := timer.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

// lacks is what no engine of detent has.
func lacks() map[suite.Capability]string {
	l := map[suite.Capability]string{
		suite.SyncChannels: "C has a buffer of one, which Stop and Reset empty: " +
			"only the runtime can send at the moment somebody receives",
	}
	if portable {
		l[suite.Dropped] = "a weak reference to a channel needs package unsafe, which the portable build does without"
	}
	return l
}

// functions is the package's functions as an engine.
func functions() suite.Engine {
	e := service("default", nil)
	e.NewTimer = func(d time.Duration) suite.Timer { return oneShot{timer.NewTimer(d)} }
	e.AfterFunc = func(d time.Duration, f func()) suite.Timer { return oneShot{timer.AfterFunc(d, f)} }
	e.After = timer.After
	e.Sleep = timer.Sleep
	e.NewTicker = func(d time.Duration) suite.Ticker { return ticker{timer.NewTicker(d)} }
	e.Tick = timer.Tick
	e.Pending = func() uint64 { return timer.Default().Stats().Pending }
	return e
}

// service is s as an engine.
func service(name string, s *timer.Service) suite.Engine {
	return suite.Engine{
		Name:       name,
		Prefix:     "timer: ",
		NewTimer:   func(d time.Duration) suite.Timer { return oneShot{s.NewTimer(d)} },
		AfterFunc:  func(d time.Duration, f func()) suite.Timer { return oneShot{s.AfterFunc(d, f)} },
		After:      func(d time.Duration) <-chan time.Time { return s.After(d) },
		Sleep:      func(d time.Duration) { s.Sleep(d) },
		NewTicker:  func(d time.Duration) suite.Ticker { return ticker{s.NewTicker(d)} },
		Tick:       func(d time.Duration) <-chan time.Time { return s.Tick(d) },
		ZeroTimer:  func() suite.Timer { return oneShot{new(timer.Timer)} },
		ZeroTicker: func() suite.Ticker { return ticker{new(timer.Ticker)} },
		Pending:    func() uint64 { return s.Stats().Pending },
		Lacks:      lacks(),
	}
}

// absolute is s as an engine, by the methods that take a time.
func absolute(name string, s *timer.Service) suite.Engine {
	e := service(name, s)
	e.NewTimer = func(d time.Duration) suite.Timer { return absoluteTimer{s.NewTimerAt(time.Now().Add(d))} }
	e.AfterFunc = func(d time.Duration, f func()) suite.Timer {
		return absoluteTimer{s.AfterFuncAt(time.Now().Add(d), f)}
	}
	e.After = func(d time.Duration) <-chan time.Time { return s.NewTimerAt(time.Now().Add(d)).C }
	e.Sleep = func(d time.Duration) { s.SleepUntil(time.Now().Add(d)) }
	return e
}

type absoluteTimer struct{ *timer.Timer }

func (t absoluteTimer) C() <-chan time.Time { return t.Timer.C }

func (t absoluteTimer) Reset(d time.Duration) bool { return t.Timer.ResetAt(time.Now().Add(d)) }

// embedding is s as an engine whose functions are called by embedded timers.
func embedding(name string, s *timer.Service) suite.Engine {
	e := service(name, s)
	e.AfterFunc = func(d time.Duration, f func()) suite.Timer {
		u := new(user)
		if f == nil {
			u.timer.Init(s, nil)
		}
		u.f = f
		u.timer.Init(s, u)
		u.timer.Reset(d)
		return u
	}
	e.Sleep = func(d time.Duration) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		if err := s.SleepContext(ctx, d); err != nil {
			panic(err)
		}
	}
	return e
}

// user is a struct with a timer.
type user struct {
	timer timer.Embedded
	f     func()
}

func (u *user) Expire(*timer.Embedded)     { u.f() }
func (u *user) C() <-chan time.Time        { return nil }
func (u *user) Stop() bool                 { return u.timer.Stop() }
func (u *user) Reset(d time.Duration) bool { return u.timer.Reset(d) }

type oneShot struct{ *timer.Timer }

func (t oneShot) C() <-chan time.Time { return t.Timer.C }

type ticker struct{ *timer.Ticker }

func (t ticker) C() <-chan time.Time { return t.Ticker.C }

// TestBoottime counts on the clock that does not stop while the system is
// suspended, which here it never is.
func TestBoottime(t *testing.T) { suite.Run(t, service("boottime", mustNewOn(t, timer.Boottime))) }

// TestRealtime counts on the wall clock, which nobody must set meanwhile.
func TestRealtime(t *testing.T) {
	wantSteadyWall(t)
	suite.Run(t, service("realtime", mustNewOn(t, timer.Realtime)))
}

// wantSteadyWall skips a test that checks durations on the wall clock by monotonic
// time where the two are not read to the same nanosecond, or not slewed together.
func wantSteadyWall(t testing.TB) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the wall clock may count otherwise than the monotonic clock does")
	}
}

// mustNewOn makes a service on a clock, if there is one.
func mustNewOn(t testing.TB, c timer.Clock) *timer.Service {
	t.Helper()
	if _, err := timer.New(&timer.Options{Clock: c}); errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	return mustNew(t, &timer.Options{Clock: c})
}
