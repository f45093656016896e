package timer_test

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/detent-go/detent/internal/suite"
	"github.com/detent-go/detent/timer"
)

// wantClosed checks that f panics as what does on a closed service.
func wantClosed(t testing.TB, what string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if got, want := recover(), "timer: "+what+" called on closed Service"; got != want {
			t.Errorf("%s after Close: panic value %v, want %q", what, got, want)
		}
	}()
	f()
}

// closes closes s and fails the test if that gives an error or never ends.
func closes(t testing.TB, s *timer.Service) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- s.Close() }()
	if err := suite.Await(t, "Close returned", done); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// eachService runs f once for each kind of service. What open makes, f closes.
func eachService(t *testing.T, f func(t *testing.T, open func() *timer.Service)) {
	exact, coarse := time.Duration(0), 4*time.Millisecond
	for name, o := range map[string]*timer.Options{
		"nil":    nil,
		"exact":  {Slack: &exact},
		"wheel":  {Slack: &coarse},
		"inline": {Callbacks: timer.Inline},
		"shard":  {Shards: 1},
		"blame":  {Blame: true},
	} {
		t.Run(name, func(t *testing.T) { f(t, func() *timer.Service { return mustNewOpen(t, o) }) })
	}
	t.Run("lane", func(t *testing.T) { f(t, func() *timer.Service { return mustLaneOpen(t, nil) }) })
}

// mustLaneOpen makes a lane that the test closes itself.
func mustLaneOpen(t testing.TB, o *timer.LaneOptions) *timer.Service {
	t.Helper()
	s, err := timer.NewLane(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// mustNewOpen makes a service that the test closes itself.
func mustNewOpen(t testing.TB, o *timer.Options) *timer.Service {
	t.Helper()
	s, err := timer.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// What is pending at Close never fires, and Close returns before it is due.
func TestClosePending(t *testing.T) {
	eachService(t, func(t *testing.T, open func() *timer.Service) {
		// Should the machine be so slow that something is due before Close has
		// returned, then that proves nothing, and longer times are tried.
		for d := 50 * time.Millisecond; ; d *= 2 {
			s := open()
			var fired atomic.Int64
			start := time.Now()
			var timers []*timer.Timer
			var tickers []*timer.Ticker
			for i := range 100 {
				d := d + time.Duration(i)*time.Microsecond
				timers = append(timers, s.AfterFunc(d, func() { fired.Add(1) }), s.NewTimer(d),
					s.WithSlack(0).NewTimer(d), s.AfterFunc(time.Hour, func() { fired.Add(1) }))
				tickers = append(tickers, s.NewTicker(d))
			}
			closes(t, s)
			if time.Since(start) > d && d < 10*time.Second {
				continue
			}
			time.Sleep(d + 20*time.Millisecond)
			if n := fired.Load(); n != 0 {
				t.Errorf("%d functions ran after Close", n)
			}
			for _, tm := range timers {
				if tm.Stop() {
					t.Error("Stop after Close = true")
				}
				select {
				case v := <-tm.C:
					t.Errorf("received %v after Close", v)
				default:
				}
				wantClosed(t, "Reset", func() { tm.Reset(time.Millisecond) })
			}
			for _, tk := range tickers {
				tk.Stop()
				select {
				case v := <-tk.C:
					t.Errorf("tick %v after Close", v)
				default:
				}
				wantClosed(t, "Reset", func() { tk.Reset(time.Millisecond) })
			}
			return
		}
	})
}

// A value that was sent before Close is left to whoever receives it: Stop and
// Reset do not take it back.
func TestCloseSent(t *testing.T) {
	eachService(t, func(t *testing.T, open func() *timer.Service) {
		s := open()
		stopped, reset := s.NewTimer(0), s.NewTimer(time.Millisecond)
		suite.Eventually(t, "both values were sent", func() bool { return len(stopped.C) == 1 && len(reset.C) == 1 })
		closes(t, s)
		if stopped.Stop() {
			t.Error("Stop after Close = true")
		}
		wantClosed(t, "Reset", func() { reset.Reset(time.Millisecond) })
		suite.Await(t, "the value was there", stopped.C)
		suite.Await(t, "the value was there", reset.C)
	})
}

func TestCloseMisuse(t *testing.T) {
	eachService(t, func(t *testing.T, open func() *timer.Service) {
		s := open()
		view, early := s.WithSlack(time.Second), s.NewTimer(0)
		suite.Await(t, "a timer fired", early.C)
		closes(t, s)
		for _, s := range []*timer.Service{s, view} {
			wantClosed(t, "AfterFunc", func() { s.AfterFunc(time.Second, func() {}) })
			wantClosed(t, "NewTimer", func() { s.NewTimer(0) })
			wantClosed(t, "After", func() { s.After(-1) })
			wantClosed(t, "Sleep", func() { s.Sleep(time.Second) })
			wantClosed(t, "NewTicker", func() { s.NewTicker(time.Second) })
			wantClosed(t, "Tick", func() { s.Tick(time.Second) })
			if n := s.Stats().Pending; n != 0 {
				t.Errorf("%d pending after Close", n)
			}
		}
		if early.Stop() {
			t.Error("Stop after Close = true")
		}
		wantClosed(t, "Reset", func() { early.Reset(0) })
		// A second one is harmless, whatever it says.
		done := make(chan struct{})
		go func() { _ = s.Close(); close(done) }()
		suite.Await(t, "a second Close returned", done)
	})
}

func TestCloseDefault(t *testing.T) {
	if err := timer.Default().Close(); err == nil {
		t.Error("Close of the default service gave no error")
	}
	suite.Await(t, "a timer fired", timer.After(0))
}

func TestCloseSleeping(t *testing.T) {
	eachService(t, func(t *testing.T, open func() *timer.Service) {
		const n = 100
		s := open()
		var asleep, awake sync.WaitGroup
		asleep.Add(n)
		for i := range n {
			awake.Go(func() {
				// One that has not yet begun when the service closes panics.
				defer func() { _ = recover() }()
				asleep.Done()
				if i%2 == 0 {
					s.Sleep(time.Hour)
				} else {
					s.WithSlack(0).Sleep(1<<63 - 1)
				}
			})
		}
		asleep.Wait()
		time.Sleep(time.Millisecond)
		closes(t, s)
		done := make(chan struct{})
		go func() { awake.Wait(); close(done) }()
		suite.Await(t, "blocked Sleeps returned at Close", done)
	})
}

// Close does not wait for functions that run, and may be called by one.
func TestCloseCallbacks(t *testing.T) {
	t.Run("blocked", func(t *testing.T) {
		s := mustNewOpen(t, nil)
		release, begun := make(chan struct{}), make(chan struct{})
		s.AfterFunc(0, func() { close(begun); <-release })
		suite.Await(t, "a function began", begun)
		closes(t, s)
		close(release)
	})
	t.Run("itself", func(t *testing.T) {
		eachService(t, func(t *testing.T, open func() *timer.Service) {
			s, done := open(), make(chan error, 1)
			s.AfterFunc(time.Millisecond, func() { done <- s.Close() })
			if err := suite.Await(t, "Close returned in a function", done); err != nil {
				t.Errorf("Close: %v", err)
			}
		})
	})
}

// Several Closes race with everything else; each operation works or panics as
// documented.
func TestCloseConcurrent(t *testing.T) {
	eachService(t, func(t *testing.T, open func() *timer.Service) {
		for range suite.Scale(20) {
			closeConcurrently(t, open())
		}
	})
}

func closeConcurrently(t *testing.T, s *timer.Service) {
	// try reports whether op did not panic.
	try := func(op func()) (open bool) {
		defer func() {
			if r := recover(); r != nil {
				open = false
				msg, _ := r.(string)
				if !strings.HasPrefix(msg, "timer: ") || !strings.HasSuffix(msg, " called on closed Service") {
					t.Errorf("panic value %v", r)
				}
			}
		}()
		op()
		return true
	}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			var tm *timer.Timer
			if !try(func() { tm = s.NewTimer(time.Hour) }) {
				return
			}
			for i := 0; ; i++ {
				if !try(func() { operate(s, tm, i+g) }) {
					return
				}
			}
		})
	}
	time.Sleep(2 * time.Millisecond)
	for range 4 {
		wg.Go(func() { _ = s.Close() })
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	suite.Await(t, "every operation ended after Close", done)
}

// operate does something with s and tm, by turns.
func operate(s *timer.Service, tm *timer.Timer, i int) {
	d := time.Duration(i%5) * 100 * time.Microsecond
	switch i % 6 {
	case 0:
		tm.Reset(d)
	case 1:
		tm.Stop()
		runtime.Gosched()
	case 2:
		s.AfterFunc(d, func() {})
	case 3:
		tk := s.NewTicker(d + 1)
		tk.Reset(time.Hour)
		tk.Stop()
	case 4:
		s.WithSlack(0).Sleep(d)
	case 5:
		// After Close it never comes.
		select {
		case <-s.After(d):
		case <-time.After(time.Millisecond):
		}
	}
}

// 200 services in a row leave nothing behind.
func TestCloseLeaks(t *testing.T) {
	use := func(i int) {
		var o *timer.Options
		if i%3 == 0 {
			o = &timer.Options{Shards: 1 + i%4}
		}
		s := mustNewOpen(t, o)
		var wg sync.WaitGroup
		wg.Add(1)
		s.WithSlack(0).AfterFunc(100*time.Microsecond, wg.Done)
		s.WithSlack(time.Second).AfterFunc(time.Hour, func() {})
		s.AfterFunc(time.Hour, func() {})
		tk := s.NewTicker(time.Millisecond)
		if i%2 == 0 {
			<-tk.C
		}
		wg.Go(func() { s.Sleep(200 * time.Microsecond) })
		wg.Wait()
		closes(t, s)
	}
	use(0)
	goroutines, fds, threads := runtime.NumGoroutine(), openFiles(), suite.Threads()
	for i := range 200 {
		use(i)
	}
	suite.Eventually(t, fmt.Sprintf("%d goroutines again", goroutines), func() bool {
		return runtime.NumGoroutine() <= goroutines
	})
	suite.Eventually(t, fmt.Sprintf("%d open files again", fds), func() bool {
		return openFiles() <= fds
	})
	// The runtime keeps the threads that it has once made.
	if now := suite.Threads(); now > threads+16 {
		t.Errorf("%d threads after 200 services, %d before", now, threads)
	}
}

// openFiles is the number of open file descriptors, where the system says it.
func openFiles() int {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(list)
}
