package suite

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// patience is how long a test waits for what must happen. It is no bound on
// lateness: it is long enough that only what never happens exceeds it. It is
// counted in steps of the waiting: a machine that is halted and goes on (a
// virtual one, while it is saved) takes one step, however long that was.
var patience = time.Minute

// step is the longest step in which patience is counted.
const step = 50 * time.Millisecond

// Scale is full, or a tenth of it where that would take too long.
func Scale(full int) int {
	if testing.Short() || Race || OneThread {
		full /= 10
	}
	return max(full, 1)
}

// OneThread is true where all goroutines share one thread that is never
// preempted, so that a goroutine that spins stops the world.
const OneThread = runtime.GOOS == "js" || runtime.GOOS == "wasip1"

// Eventually waits for cond to hold, and fails the test if it never does.
func Eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	pause := 100 * time.Microsecond
	for waited := time.Duration(0); !cond(); waited += pause {
		if waited > patience {
			t.Fatalf("after %v still not so: %s", patience, what)
		}
		pause = min(2*pause, step)
		time.Sleep(pause)
	}
}

// Await receives from c, and fails the test if nothing ever comes.
func Await[T any](t testing.TB, what string, c <-chan T) (v T) {
	t.Helper()
	for waited := time.Duration(0); waited <= patience; waited += step {
		limit := time.NewTimer(step)
		select {
		case v = <-c:
			limit.Stop()
			return v
		case <-limit.C:
		}
	}
	t.Fatalf("after %v still not so: %s", patience, what)
	return v
}

// wait waits for wg, and fails the test if that never ends.
func wait(t testing.TB, what string, wg *sync.WaitGroup) {
	t.Helper()
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	Await(t, what, done)
}

// together runs f(t, 0) to f(t, n-1), each in a goroutine of its own, and waits
// for them. The t that it hands to f may be used as in the test's goroutine.
func together(t testing.TB, what string, n int, f func(t testing.TB, i int)) {
	t.Helper()
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { f(beside{t}, i) })
	}
	wait(t, what, &wg)
}

// beside is a test as seen from a goroutine beside the test's own, where the
// methods that end the test are not allowed: they end the goroutine.
type beside struct{ testing.TB }

func (t beside) FailNow() {
	t.Fail()
	runtime.Goexit()
}

func (t beside) Fatal(args ...any) {
	t.Helper()
	t.Error(args...)
	runtime.Goexit()
}

func (t beside) Fatalf(format string, args ...any) {
	t.Helper()
	t.Errorf(format, args...)
	runtime.Goexit()
}

// settle leaves time for what must not happen any more. A test that calls it
// can miss a fault on a slow machine, and cannot see one where there is none.
func settle() { time.Sleep(30 * time.Millisecond) }

// empty reports an error if something can be received from c.
func empty(t testing.TB, what string, c <-chan time.Time) {
	t.Helper()
	select {
	case v := <-c:
		t.Errorf("%s: received %v, want nothing", what, v)
	default:
	}
}

// shots counts the firings of a set of timers, each by itself, and keeps the
// worst earliness and the latenesses. It is safe for concurrent use.
type shots struct {
	fired []atomic.Int32
	total atomic.Int64

	mu    sync.Mutex
	early time.Duration // the worst; 0 if none was early
	count int           // of early ones
	late  []time.Duration
}

func newShots(n int) *shots {
	return &shots{fired: make([]atomic.Int32, n)}
}

// fire notes that timer i fired, which was not to happen before start+d.
// start is a reading from before the timer was started.
func (s *shots) fire(i int, start time.Time, d time.Duration) {
	late := time.Since(start) - max(d, 0)
	s.mu.Lock()
	if late < 0 {
		s.early = max(s.early, -late)
		s.count++
	}
	s.late = append(s.late, late)
	s.mu.Unlock()
	s.fired[i].Add(1)
	s.total.Add(1)
}

// checkEarly fails the test if any was early.
func (s *shots) checkEarly(t testing.TB) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count > 0 {
		t.Errorf("%d of %d fired early, the worst by %v", s.count, len(s.late), s.early)
	}
}

// checkOnce waits until each timer has fired, and fails the test if one has
// fired more than once or early.
func (s *shots) checkOnce(t testing.TB) {
	t.Helper()
	Eventually(t, fmt.Sprintf("all %d timers fired", len(s.fired)), func() bool {
		return s.total.Load() >= int64(len(s.fired))
	})
	settle()
	for i := range s.fired {
		if n := s.fired[i].Load(); n != 1 {
			t.Fatalf("timer %d of %d fired %d times, want once; %d firings in all", i, len(s.fired), n, s.total.Load())
		}
	}
	s.checkEarly(t)
}

// logLateness records the distribution of the latenesses.
func (s *shots) logLateness(t testing.TB, what string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	logLateness(t, what, s.late)
}

func logLateness(t testing.TB, what string, late []time.Duration) {
	t.Helper()
	if len(late) == 0 {
		return
	}
	late = slices.Sorted(slices.Values(late))
	t.Logf("%s: lateness of %d: p50 %v p99 %v max %v", what, len(late),
		late[len(late)/2], late[len(late)*99/100], late[len(late)-1])
}

// mustPanic calls f, which must panic with the string want.
func mustPanic(t testing.TB, what, want string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if got := recover(); got != want {
			t.Errorf("%s: panic value %v, want %q", what, got, want)
		}
	}()
	f()
}
