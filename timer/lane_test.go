package timer_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/detent-go/detent/internal/suite"
	"github.com/detent-go/detent/timer"
)

// thread returns the number of the calling thread, or skips the test where the
// system does not tell.
func thread(t testing.TB) string {
	t.Helper()
	if suite.OneThread {
		t.Skip("all goroutines have the same thread")
	}
	to, err := os.Readlink("/proc/thread-self")
	if err != nil {
		t.Skipf("the system does not tell the thread: %v", err)
	}
	return to[strings.LastIndexByte(to, '/')+1:]
}

// threadThere reports whether the process has that thread.
func threadThere(tid string) bool {
	_, err := os.Stat("/proc/self/task/" + tid)
	return err == nil
}

// onLane returns what f returns in a callback of s.
func onLane[T any](t testing.TB, s *timer.Service, f func() T) T {
	t.Helper()
	c := make(chan T, 1)
	s.AfterFunc(0, func() { c <- f() })
	return suite.Await(t, "a callback ran", c)
}

func TestLaneOptions(t *testing.T) {
	negative := -time.Second
	for want, o := range map[string]timer.LaneOptions{
		"timer: LaneOptions.Slack is -1s, want 0 or more, or nil": {Slack: &negative},
		"timer: LaneOptions.Priority is 100, want 0 to 99":        {Priority: 100},
		"timer: LaneOptions.Priority is -1, want 0 to 99":         {Priority: -1},
		"timer: LaneOptions.CPUs is empty, want a CPU, or nil":    {CPUs: []int{}},
	} {
		if s, err := timer.NewLane(&o); s != nil || err == nil || err.Error() != want {
			t.Errorf("NewLane = %v, %v; want the error %q", s, err, want)
		}
	}
	s, err := timer.NewLane(&timer.LaneOptions{CPUs: []int{1 << 20}})
	if s != nil || !errors.Is(err, fs.ErrInvalid) && !errors.Is(err, errors.ErrUnsupported) || !strings.HasPrefix(err.Error(), "timer: lane: ") {
		t.Errorf("NewLane on a CPU that is not there = %v, %v", s, err)
	}
	if portable {
		for _, o := range []timer.LaneOptions{{Priority: 1}, {CPUs: []int{0}}, {LockMemory: true}} {
			if s, err := timer.NewLane(&o); s != nil || !errors.Is(err, errors.ErrUnsupported) {
				t.Errorf("NewLane(%+v) = %v, %v; want an ErrUnsupported", o, s, err)
			}
		}
	}
	if st := mustLane(t, nil).Stats(); st.Waker != "lane" || st.WakerErr != nil {
		t.Errorf("Waker is %q, WakerErr %v", st.Waker, st.WakerErr)
	}
}

// TestLaneOneThread: the callbacks of any number of timers, tickers, queues and
// contexts run on one thread, one after another.
func TestLaneOneThread(t *testing.T) {
	if suite.OneThread {
		t.Skip("there is one thread only")
	}
	thread(t)
	s := mustLane(t, nil)
	n := suite.Scale(20_000)
	before := suite.Threads()
	var inside atomic.Int32
	var wg sync.WaitGroup
	var mu sync.Mutex
	seen := map[string]int{}
	look := func() {
		if inside.Add(1) != 1 {
			t.Error("two callbacks at the same time")
		}
		tid := thread(t)
		mu.Lock()
		seen[tid]++
		mu.Unlock()
		inside.Add(-1)
		wg.Done()
	}
	wg.Add(n)
	for i := range n {
		d := time.Duration(i%50) * time.Millisecond
		switch i % 4 {
		case 0:
			s.AfterFunc(d, look)
		case 1:
			s.WithSlack(time.Second).AfterFunc(d, look)
		case 2:
			s.AfterFunc(time.Hour, look).Reset(d)
		case 3:
			s.WithSlack(timer.AutoSlack).AfterFunc(d, look)
		}
	}
	q := timer.NewQueue(s, func(batch []timer.Expired[int]) {
		for range batch {
			look()
		}
	})
	wg.Add(1000)
	for i := range 1000 {
		q.Add(time.Duration(i)*10*time.Microsecond, i)
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	suite.Await(t, "every callback ran", done)
	if len(seen) != 1 {
		t.Errorf("callbacks ran on %d threads: %v", len(seen), seen)
	}
	// The Go runtime makes some of its own.
	if now := suite.Threads(); now > before+8 {
		t.Errorf("%d threads before, %d after", before, now)
	}
}

// TestLaneThreadEnds: the thread goes when the lane is closed, and when a callback
// has ended its goroutine; then there is another one.
func TestLaneThreadEnds(t *testing.T) {
	thread(t)
	for range 20 {
		s := mustLaneOpen(t, nil)
		first := onLane(t, s, func() string { return thread(t) })
		exited := make(chan struct{})
		s.AfterFunc(0, func() { defer close(exited); runtime.Goexit() })
		suite.Await(t, "a callback ended its goroutine", exited)
		second := onLane(t, s, func() string { return thread(t) })
		if first == second {
			t.Fatalf("thread %s goes on after its goroutine has ended", first)
		}
		suite.Eventually(t, "the first thread is gone", func() bool { return !threadThere(first) })
		if !threadThere(second) {
			t.Error("the second thread is not there")
		}
		closes(t, s)
		suite.Eventually(t, "the second thread is gone", func() bool { return !threadThere(second) })
	}
}

// TestLaneThreadsNoLeak opens and closes many lanes: no thread is left, whichever
// the goroutines began on, not even the main one.
func TestLaneThreadsNoLeak(t *testing.T) {
	before := suite.Threads()
	for range 100 {
		s := mustLaneOpen(t, nil)
		s.AfterFunc(time.Hour, func() {})
		s.Sleep(10 * time.Microsecond)
		closes(t, s)
	}
	suite.Eventually(t, "the threads are gone", func() bool { return suite.Threads() <= before+8 })
}

// TestLaneWorldStops: while a lane waits the world can be stopped, and the other
// goroutines have all Ps: with one P, too.
func TestLaneWorldStops(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	s := mustLane(t, nil)
	hour := s.NewTimer(time.Hour)
	defer hour.Stop()
	for range 50 {
		c := make(chan struct{})
		go func() {
			runtime.GC()
			close(c)
		}()
		suite.Await(t, "the world was stopped, twice", c)
		suite.Await(t, "a timer of the lane fired", s.After(100*time.Microsecond))
	}
}

// TestLaneIdle: with timers pending that are not due, the lane's thread is not
// woken: not even for those that are started to be later.
func TestLaneIdle(t *testing.T) {
	thread(t)
	s := mustLane(t, nil)
	tid := onLane(t, s, func() string { return thread(t) })
	switches := func() string {
		status, err := os.ReadFile("/proc/self/task/" + tid + "/status")
		if err != nil {
			t.Skip(err)
		}
		for line := range strings.Lines(string(status)) {
			if strings.HasPrefix(line, "voluntary_ctxt_switches") {
				return line
			}
		}
		t.Skip("no count of context switches")
		return ""
	}
	s.AfterFunc(time.Hour, func() {})
	// It goes to wait once more.
	was := switches()
	for settled := 0; settled < 20; {
		time.Sleep(time.Millisecond)
		if now := switches(); now == was {
			settled++
		} else {
			was, settled = now, 0
		}
	}
	wakeups := s.Stats().Wakeups
	for i := range 1000 {
		s.AfterFunc(2*time.Hour+time.Duration(i), func() {}).Reset(3 * time.Hour)
	}
	time.Sleep(50 * time.Millisecond)
	if now := switches(); now != was {
		t.Errorf("while idle the thread went from %q to %q", was, now)
	}
	if now := s.Stats().Wakeups; now != wakeups {
		t.Errorf("%d wake-ups while idle", now-wakeups)
	}
}

// TestLaneCloseBlocked: Close does not wait for a callback, and the thread ends when
// that does.
func TestLaneCloseBlocked(t *testing.T) {
	thread(t)
	s := mustLaneOpen(t, nil)
	begun, release := make(chan string, 1), make(chan struct{})
	s.AfterFunc(0, func() { begun <- thread(t); <-release })
	tid := suite.Await(t, "a callback began", begun)
	closes(t, s)
	close(release)
	suite.Eventually(t, "the thread is gone", func() bool { return !threadThere(tid) })
}

// TestLaneBubble: in a bubble a lane is on the bubble's clock, made inside or
// outside; one that was made inside works outside, on a thread.
func TestLaneBubble(t *testing.T) {
	outside := mustLane(t, nil)
	var inside *timer.Service
	synctest.Test(t, func(t *testing.T) {
		var err error
		if inside, err = timer.NewLane(&timer.LaneOptions{Spin: true}); err != nil {
			t.Fatal(err)
		}
		if _, err := timer.NewLane(&timer.LaneOptions{CPUs: []int{1 << 20}}); err == nil {
			t.Error("no error for a CPU that is not there")
		}
		for _, s := range []*timer.Service{outside, inside, inside.WithSpin()} {
			start := time.Now()
			s.Sleep(time.Hour)
			<-s.After(time.Hour)
			called := make(chan struct{})
			s.AfterFunc(time.Hour, func() { close(called) })
			<-called
			if d := time.Since(start); d != 3*time.Hour {
				t.Errorf("three hours took %v", d)
			}
		}
	})
	suite.Await(t, "a timer fired outside", inside.After(time.Millisecond))
	onLane(t, inside, func() bool { return true })
	closes(t, inside)
}

// TestSpun: spinning is counted, by those who asked for it.
func TestSpun(t *testing.T) {
	s := mustNew(t, nil)
	for range 20 {
		s.Sleep(50 * time.Microsecond)
	}
	if d := s.Stats().Spun; d != 0 {
		t.Errorf("without spinning Spun is %v", d)
	}
	spin := s.WithSpin()
	start := time.Now()
	for range 20 {
		spin.WithSlack(0).Sleep(2 * time.Microsecond) // less than any margin
	}
	if d := s.Stats().Spun; d < 20*2*time.Microsecond/2 || d > time.Since(start) {
		t.Errorf("after %v with 20 sleeps of 2us Spun is %v", time.Since(start), d)
	}
	if d := mustNew(t, nil).Stats().Spun; d != 0 {
		t.Errorf("another service's Spun is %v", d)
	}
	lane := mustLane(t, &timer.LaneOptions{Spin: true})
	start = time.Now()
	suite.Eventually(t, "the lane has spun", func() bool {
		lane.Sleep(100 * time.Microsecond)
		return lane.Stats().Spun > 0
	})
	if d := lane.Stats().Spun; d > time.Since(start) {
		t.Errorf("after %v Spun is %v", time.Since(start), d)
	}
}

// TestLaneBlame: a lane tells the kernel's part of lateness from the scheduler's,
// where the system does, and the parts add up.
func TestLaneBlame(t *testing.T) {
	s := mustLane(t, nil)
	for range 100 {
		s.Sleep(100 * time.Microsecond)
	}
	st := s.Stats()
	b := st.Blame
	if n, tells := b.Kernel.Count(), runtime.GOOS == "linux" && !portable; (n != 0) != tells || n != b.Scheduler.Count() {
		t.Errorf("kernel has %d values, scheduler %d", n, b.Scheduler.Count())
	}
	sum := b.Slack.Sum() + b.Kernel.Sum() + b.Scheduler.Sum() + b.Wakeup.Sum() + b.Throttled.Sum() + b.Queue.Sum()
	if sum != st.Lateness.Sum() {
		t.Errorf("the parts add up to %v of %v", sum, st.Lateness.Sum())
	}
}

// Every face of a service works on a lane, which its own callback can close.
func TestLaneFaces(t *testing.T) {
	s, err := timer.NewLane(nil)
	if err != nil {
		t.Fatal(err)
	}
	const n = 2000
	delivered := make(chan int, n)
	q := timer.NewQueue(s, func(batch []timer.Expired[int]) {
		for _, x := range batch {
			delivered <- x.Value
		}
	})
	for k := range n {
		q.Add(time.Duration(k)*time.Microsecond, k)
	}
	ctx, cancel := s.WithTimeout(t.Context(), 2*time.Millisecond)
	defer cancel()
	if err := s.SleepContext(ctx, time.Hour); err != context.DeadlineExceeded {
		t.Errorf("SleepContext = %v", err)
	}
	ticks := make(chan timer.Ticked, n)
	iv := s.TickFunc(time.Millisecond, func(tick timer.Ticked) { ticks <- tick }, nil)
	suite.Await(t, "a tick came", ticks)
	iv.Stop()
	e, fired := new(timer.Embedded), make(chanExpirer, 1)
	e.Init(s, fired)
	e.Reset(time.Microsecond)
	suite.Await(t, "an embedded timer fired", fired)
	s.WithSpin().Sleep(time.Millisecond)
	seen := map[int]bool{}
	for range n {
		seen[suite.Await(t, "the queue delivered", delivered)] = true
	}
	if len(seen) != n {
		t.Errorf("%d values of %d", len(seen), n)
	}
	closed := make(chan error, 1)
	s.AfterFunc(0, func() { closed <- s.Close() })
	if err := suite.Await(t, "Close in a callback returned", closed); err != nil {
		t.Error(err)
	}
}
