// Package enginetest runs detent's own test suite over an engine of the lab, and
// tests what the suite does not know of: that Close ends everything.
package enginetest

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/detent-go/detent/internal/suite"
	"github.com/detent-go/detent/lab/engine"
)

// capabilities are those that the suite knows too.
var capabilities = map[engine.Capability]suite.Capability{
	engine.NilPanics:    suite.NilPanics,
	engine.BoundedStorm: suite.BoundedStorm,
	engine.Counted:      suite.Counted,
	engine.Dropped:      suite.Dropped,
	engine.ExactResults: suite.ExactResults,
	engine.SyncChannels: suite.SyncChannels,
}

// Zero makes timers and tickers that nothing has initialized. Prefix opens their
// panic messages.
type Zero struct {
	Prefix string
	Timer  func() engine.ChanTimer
	Ticker func() engine.Ticker
}

// Over is the Zero of the engines behind package engine's face.
func Over() Zero {
	return Zero{
		Prefix: "lab: ",
		Timer:  func() engine.ChanTimer { return new(engine.TimerOver) },
		Ticker: func() engine.Ticker { return new(engine.TickerOver) },
	}
}

// Suite runs the suite over a new engine, and closes it.
func Suite(t *testing.T, info engine.Info, zero Zero) {
	newEngine := func() (engine.Engine, error) { return info.New(0) }
	t.Run("HugeFirst", func(t *testing.T) { hugeFirst(t, Open(t, newEngine)) })
	t.Run("WithTimeout", func(t *testing.T) { withTimeout(t, Open(t, newEngine)) })
	e := Open(t, newEngine)
	s := suite.Engine{
		Name:       info.Name,
		Prefix:     zero.Prefix,
		NewTimer:   func(d time.Duration) suite.Timer { return e.NewTimer(d) },
		AfterFunc:  func(d time.Duration, f func()) suite.Timer { return funcTimer{e.AfterFunc(d, f)} },
		After:      e.After,
		Sleep:      e.Sleep,
		NewTicker:  func(d time.Duration) suite.Ticker { return e.NewTicker(d) },
		Tick:       e.Tick,
		ZeroTimer:  func() suite.Timer { return zero.Timer() },
		ZeroTicker: func() suite.Ticker { return zero.Ticker() },
		Slack:      info.Grain,
		Lacks:      map[suite.Capability]string{},
	}
	for c, why := range info.Lacks {
		if known, ok := capabilities[c]; ok {
			s.Lacks[known] = why
		}
	}
	if _, counts := e.Counters(); counts {
		s.Pending = func() uint64 { c, _ := e.Counters(); return c.Pending }
	}
	suite.Run(t, s)
	if c, counts := e.Counters(); counts {
		t.Logf("%+v", c)
	}
}

// hugeFirst starts a timer while the engine sleeps for the end of time.
func hugeFirst(t *testing.T, e engine.Engine) {
	never := e.AfterFunc(math.MaxInt64, func() { t.Error("a timer of 292 years fired") })
	defer never.Stop()
	for range 20 {
		time.Sleep(time.Millisecond)
		suite.Await(t, "a timer fired beside one of 292 years", e.After(time.Millisecond))
	}
}

// funcTimer has a channel that nothing is ever sent on, as package time's.
type funcTimer struct{ engine.Timer }

func (funcTimer) C() <-chan time.Time { return nil }

// Open makes an engine that is closed when the test ends, or skips the test if
// this system does not support it.
func Open(t testing.TB, newEngine func() (engine.Engine, error)) engine.Engine {
	t.Helper()
	e, err := newEngine()
	if err != nil {
		SkipUnsupported(t, err)
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		threadsEnd(t, e)
	})
	return e
}

// Close tests that Close ends all timers, goroutines, threads and files of the engine,
// whatever it is doing, and that nothing happens afterwards that must not.
func Close(t *testing.T, info engine.Info, procs int) {
	const rounds = 20
	time.Sleep(time.Microsecond) // the first sleep opens the runtime's own files
	before, files := runtime.NumGoroutine(), openFiles()
	for round := range rounds {
		e, err := info.New(procs)
		if err != nil {
			SkipUnsupported(t, err)
			t.Fatal(err)
		}
		closeOne(t, e, round)
	}
	suite.Eventually(t, fmt.Sprintf("the goroutines of %d closed engines have ended", rounds), func() bool {
		return runtime.NumGoroutine() <= before
	})
	suite.Eventually(t, fmt.Sprintf("the files of %d closed engines are closed", rounds), func() bool {
		return openFiles() <= files
	})
}

// openFiles returns how many files the process has open, 0 where the system does not
// say.
func openFiles() int {
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(files)
}

// closeOne closes e, in a state that depends on the round, and looks at what is
// left.
func closeOne(t *testing.T, e engine.Engine, round int) {
	t.Helper()
	asleep := make(chan struct{})
	var pending []engine.Timer
	var ticker engine.Ticker
	var timer engine.ChanTimer
	began, release, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	if round%4 != 0 {
		pending = append(pending, e.AfterFunc(time.Hour, func() { t.Error("a timer of an hour fired") }))
		ticker, timer = e.NewTicker(time.Millisecond), e.NewTimer(time.Hour)
	}
	if round%4 >= 2 {
		suite.Await(t, "a tick came", ticker.C())
		go func() {
			defer close(asleep)
			defer func() { _ = recover() }() // Close was faster
			e.Sleep(time.Hour)
		}()
		e.AfterFunc(0, func() { close(began); <-release; close(ended) })
		suite.Await(t, "a function began", began)
		time.Sleep(time.Millisecond) // for the Sleep to begin, most of the times
	}
	if round%4 == 3 {
		for range 1000 {
			pending = append(pending, e.AfterFunc(time.Hour, func() { t.Error("a timer of an hour fired") }))
			e.AfterFunc(time.Duration(round)*100*time.Microsecond, func() {})
		}
	}
	if err := e.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	if e.Close() == nil {
		t.Error("second Close = nil")
	}
	for _, tm := range pending {
		if tm.Stop() {
			t.Error("Stop after Close = true")
		}
	}
	if c, counts := e.Counters(); counts && c.Pending != 0 {
		t.Errorf("%d pending after Close", c.Pending)
	}
	if round%4 >= 2 {
		suite.Await(t, "Close ended a Sleep", asleep)
		close(release)
		suite.Await(t, "the function ended that ran during Close", ended)
	}
	threadsEnd(t, e)
	panics(t, "AfterFunc", func() { e.AfterFunc(0, func() { t.Error("fired after Close") }) })
	panics(t, "NewTicker", func() { e.NewTicker(time.Hour) })
	panics(t, "Sleep", func() { e.Sleep(time.Nanosecond) })
	if timer != nil {
		panics(t, "Reset of a timer", func() { timer.Reset(0) })
		panics(t, "Reset of a ticker", func() { ticker.Reset(time.Hour) })
		panics(t, "Reset of a function's timer", func() { pending[0].Reset(0) })
		// A tick from before may have been waiting, but none comes any more.
		select {
		case <-ticker.C():
		default:
		}
		ticker.Stop()
		select {
		case <-ticker.C():
			t.Error("a tick came from a closed engine")
		default:
		}
	}
}

func threadsEnd(t testing.TB, e engine.Engine) {
	t.Helper()
	suite.Eventually(t, "the engine has no threads after Close", func() bool {
		c, _ := e.Counters()
		return c.Threads == 0
	})
}

func panics(t *testing.T, what string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if recover() == nil {
			t.Errorf("%s after Close did not panic", what)
		}
	}()
	f()
}

// SkipUnsupported skips the test if err says that the system lacks something.
// Anything else is for the caller to report.
func SkipUnsupported(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
}
