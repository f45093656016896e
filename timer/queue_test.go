package timer_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"weak"

	"github.com/detent-go/detent/internal/suite"
	"github.com/detent-go/detent/timer"
)

// due is a value that knows when it is to be delivered, and which one it is.
type due struct {
	at time.Time
	id int
}

// receiver checks what a handler of a queue of due is called with: no value
// early, none twice.
type receiver struct {
	counts []atomic.Int32
	total  atomic.Int64
	early  atomic.Int64
	again  atomic.Int64
	most   atomic.Int64 // the greatest batch
}

func newReceiver(n int) *receiver { return &receiver{counts: make([]atomic.Int32, n)} }

func (r *receiver) handle(batch []timer.Expired[due]) {
	now := time.Now()
	for {
		most := r.most.Load()
		if int64(len(batch)) <= most || r.most.CompareAndSwap(most, int64(len(batch))) {
			break
		}
	}
	for _, x := range batch {
		if now.Before(x.Value.at) {
			r.early.Add(1)
		}
		if r.counts[x.Value.id].Add(1) > 1 {
			r.again.Add(1)
		}
		r.total.Add(1)
	}
}

func (r *receiver) check(t *testing.T) {
	t.Helper()
	if n := r.early.Load(); n != 0 {
		t.Errorf("%d of %d values early", n, r.total.Load())
	}
	if n := r.again.Load(); n != 0 {
		t.Errorf("%d values were delivered again", n)
	}
	if n := r.most.Load(); n > 256 {
		t.Errorf("a batch of %d", n)
	}
}

// add adds a value that is due in d.
func add(q *timer.Queue[due], d time.Duration, id int) timer.Handle {
	// The time that must not be undercut is no later than Add's own.
	return q.Add(d, due{time.Now().Add(d), id})
}

// closeQueue closes q at the end of the test.
func closeQueue[T any](t testing.TB, q *timer.Queue[T]) {
	t.Cleanup(func() {
		if err := q.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
}

// queueServices runs f over services of all kinds.
func queueServices(t *testing.T, f func(t *testing.T, s *timer.Service)) {
	exact, coarse := time.Duration(0), 4*time.Millisecond
	for name, o := range map[string]*timer.Options{
		"nil":    nil,
		"exact":  {Slack: &exact},
		"coarse": {Slack: &coarse},
		"inline": {Callbacks: timer.Inline},
		"shard":  {Shards: 1},
	} {
		t.Run(name, func(t *testing.T) { f(t, mustNew(t, o)) })
	}
	t.Run("boottime", func(t *testing.T) { f(t, mustNewOn(t, timer.Boottime)) })
	t.Run("realtime", func(t *testing.T) {
		wantSteadyWall(t)
		f(t, mustNewOn(t, timer.Realtime))
	})
}

// Values of all kinds of durations are delivered once, and not early.
func TestQueueDelivers(t *testing.T) {
	queueServices(t, func(t *testing.T, s *timer.Service) {
		n := suite.Scale(20_000)
		r := newReceiver(n)
		q := timer.NewQueue(s, r.handle)
		var wg sync.WaitGroup
		const adders = 4
		for g := range adders {
			wg.Go(func() {
				for id := g; id < n; id += adders {
					add(q, time.Duration(rand.Int64N(int64(60*time.Millisecond)))-time.Millisecond, id)
				}
			})
		}
		wg.Wait()
		suite.Eventually(t, "all values were delivered", func() bool { return r.total.Load() >= int64(n) })
		if got := q.Len(); got != 0 {
			t.Errorf("Len = %d, want 0", got)
		}
		if st := q.Stats(); st.Fired != uint64(n) || st.Started != uint64(n) || st.Wakeups == 0 {
			t.Errorf("Stats: %d fired, %d started, want %d; %d wake-ups", st.Fired, st.Started, n, st.Wakeups)
		}
		r.check(t)
		if err := q.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
}

// Where values come so fast that the clock is not read for each, none is early
// for it, also when the adders are interrupted all the time.
func TestQueueGuessing(t *testing.T) {
	s := mustNew(t, nil).WithSlack(20 * time.Millisecond)
	n := suite.Scale(400_000)
	r := newReceiver(n)
	q := timer.NewQueue(s, r.handle)
	closeQueue(t, q)
	var wg sync.WaitGroup
	adders := 2 * runtime.GOMAXPROCS(0)
	for g := range adders {
		wg.Go(func() {
			for id := g; id < n; id += adders {
				d := 17*time.Millisecond + time.Duration(id%1000)*10*time.Microsecond
				if id%2 == 0 {
					add(q, d, id)
				} else {
					at := time.Now()
					h := q.Add(time.Hour, due{at.Add(d), id})
					if !q.Reset(h, d) {
						t.Error("Reset of a pending value = false")
					}
				}
				switch id % 5000 {
				case 0:
					time.Sleep(time.Duration(rand.IntN(300)) * time.Microsecond)
				case 1:
					runtime.Gosched()
				}
			}
		})
	}
	wg.Wait()
	suite.Eventually(t, "all values were delivered", func() bool { return r.total.Load() >= int64(n) })
	r.check(t)
}

func TestQueueStop(t *testing.T) {
	r := newReceiver(200)
	q := timer.NewQueue(nil, r.handle)
	closeQueue(t, q)
	var handles []timer.Handle
	for id := range 200 {
		handles = append(handles, add(q, 20*time.Millisecond, id))
	}
	stopped := 0
	for id, h := range handles {
		if id%2 == 0 && q.Stop(h) {
			stopped++
			if q.Stop(h) || q.Reset(h, time.Second) {
				t.Error("a handle names something after Stop")
			}
		}
	}
	want := int64(200 - stopped)
	suite.Eventually(t, "what was not stopped was delivered", func() bool { return r.total.Load() >= want })
	time.Sleep(30 * time.Millisecond)
	if got := r.total.Load(); got != want {
		t.Errorf("%d delivered, want %d", got, want)
	}
	r.check(t)
	for _, h := range handles {
		if q.Stop(h) || q.Reset(h, 0) {
			t.Error("a handle names something after its value was delivered")
		}
	}
}

// Handles that name nothing, or something in another queue, are harmless.
func TestQueueHandles(t *testing.T) {
	q := timer.NewQueue[string](nil, nil)
	other := timer.NewQueue[string](nil, nil)
	for range 3 {
		theirs := other.Add(time.Hour, "theirs")
		ours := q.Add(time.Hour, "ours")
		if ours == theirs || ours == (timer.Handle{}) {
			t.Errorf("handles %v and %v", ours, theirs)
		}
		for _, h := range []timer.Handle{{}, theirs} {
			if q.Stop(h) || q.Reset(h, 0) || q.ResetAt(h, time.Now()) {
				t.Errorf("handle %v names something", h)
			}
		}
		if q.Len() != 1 || other.Len() < 1 {
			t.Error("a value has gone")
		}
		if !q.Reset(ours, time.Minute) || !q.ResetAt(ours, time.Now().Add(time.Hour)) || !q.Stop(ours) {
			t.Error("a value has gone")
		}
	}
	_ = q.Close()
	_ = other.Close()
}

func TestQueueReset(t *testing.T) {
	r := newReceiver(7)
	q := timer.NewQueue(nil, r.handle)
	closeQueue(t, q)
	start := time.Now()
	at := start.Add(30 * time.Millisecond)
	q.Reset(q.Add(time.Hour, due{at, 0}), 30*time.Millisecond)
	q.Reset(q.Add(10*time.Millisecond, due{at, 1}), 31*time.Millisecond)
	q.ResetAt(q.Add(time.Hour, due{at, 2}), at)
	q.ResetAt(q.Add(10*time.Millisecond, due{at, 3}), at)
	// Without a monotonic reading, a time is one of the wall clock.
	q.ResetAt(q.AddAt(at.Add(time.Hour).Round(0), due{start, 4}), start.Add(-time.Second).Round(0))
	wall := time.Now().Add(30 * time.Millisecond)
	q.AddAt(wall.Round(0), due{wall.Add(-time.Millisecond), 6})
	later := q.Add(10*time.Millisecond, due{at, 5})
	if q.Reset(later, time.Hour) {
		suite.Eventually(t, "six values were delivered", func() bool { return r.total.Load() >= 6 })
		if !q.Stop(later) {
			t.Error("Stop of a value reset to an hour = false")
		}
	}
	suite.Eventually(t, "all were delivered", func() bool { return r.total.Load() >= 6 })
	r.check(t)
}

// A handler that blocks holds up the values of its shard alone; they can be
// stopped meanwhile, and are delivered when it returns.
func TestQueueHandlerBlocks(t *testing.T) {
	s := mustNew(t, &timer.Options{Shards: 1})
	release, blocked := make(chan struct{}), make(chan struct{})
	var delivered atomic.Int64
	var inside, overlapped atomic.Int32
	q := timer.NewQueue(s, func(batch []timer.Expired[int]) {
		if inside.Add(1) > 1 {
			overlapped.Add(1)
		}
		defer inside.Add(-1)
		for _, x := range batch {
			if x.Value < 0 {
				close(blocked)
				<-release
			}
			delivered.Add(1)
		}
	})
	closeQueue(t, q)
	q.Add(0, -1)
	suite.Await(t, "the handler was called", blocked)

	const n = 1000
	var handles []timer.Handle
	for k := range n {
		handles = append(handles, q.Add(time.Duration(k)*time.Microsecond, k))
	}
	// The other timers of the service go on.
	for range 3 {
		suite.Await(t, "a timer of the service fired", s.After(time.Millisecond))
	}
	other := timer.NewQueue(s, func([]timer.Expired[int]) { delivered.Add(1 << 32) })
	closeQueue(t, other)
	other.Add(time.Millisecond, 0)
	suite.Eventually(t, "another queue delivered", func() bool { return delivered.Load() == 1<<32 })
	if got := q.Len(); got != n {
		t.Errorf("Len = %d while the handler is blocked, want %d", got, n)
	}
	for k, h := range handles {
		if k%2 == 0 && !q.Stop(h) {
			t.Error("Stop of a value that is held up = false")
		}
	}
	delivered.Store(0)
	close(release)
	suite.Eventually(t, "the others were delivered", func() bool { return delivered.Load() >= 1+n/2 })
	if overlapped.Load() != 0 {
		t.Error("calls of the handler overlapped, with one shard")
	}
	q.Add(time.Millisecond, 0)
	suite.Eventually(t, "one more was delivered", func() bool { return delivered.Load() >= 2+n/2 })
	time.Sleep(5 * time.Millisecond)
	if got := delivered.Load(); got != 2+n/2 {
		t.Errorf("%d delivered, want %d", got, 2+n/2)
	}
}

// A handler that ends its goroutine has had its batch; the rest is delivered.
func TestQueueHandlerGoexit(t *testing.T) {
	for _, o := range []*timer.Options{{Shards: 1}, {Shards: 1, Callbacks: timer.Inline}} {
		r := newReceiver(2000)
		q := timer.NewQueue(mustNew(t, o), func(batch []timer.Expired[due]) {
			r.handle(batch)
			runtime.Goexit()
		})
		closeQueue(t, q)
		for id := range 2000 {
			add(q, time.Duration(id)*time.Microsecond, id)
		}
		suite.Eventually(t, "all values were delivered", func() bool { return r.total.Load() >= 2000 })
		r.check(t)
	}
}

// Values that are added again by the handler, a chain of deliveries each.
func TestQueueHandlerAdds(t *testing.T) {
	queueServices(t, func(t *testing.T, s *timer.Service) {
		const chains, links = 50, 40
		var ended atomic.Int64
		var q *timer.Queue[int]
		ready := make(chan struct{})
		q = timer.NewQueue(s, func(batch []timer.Expired[int]) {
			<-ready
			for _, x := range batch {
				if q.Stop(x.Handle) || q.Reset(x.Handle, 0) {
					t.Error("the handle of a delivered value names something")
				}
				guard := q.Add(time.Hour, -1)
				if x.Value == links {
					ended.Add(1)
				} else {
					q.Add(time.Duration(x.Value%3)*100*time.Microsecond, x.Value+1)
				}
				if !q.Stop(guard) {
					t.Error("Stop of a pending value = false")
				}
			}
		})
		close(ready)
		for range chains {
			q.Add(0, 1)
		}
		suite.Eventually(t, "all chains ended", func() bool { return ended.Load() == chains })
		_ = q.Close()
	})
}

// Many goroutines do anything to the same values. Each value that was added is
// delivered, or stopped with true; not both, not neither.
func TestQueueStress(t *testing.T) {
	for _, c := range []struct {
		name   string
		slack  time.Duration
		o      *timer.Options
		polled bool
	}{
		{"auto", timer.AutoSlack, nil, false},
		{"exact", 0, nil, false},
		{"coarse", 20 * time.Millisecond, nil, false},
		{"inline", time.Millisecond, &timer.Options{Callbacks: timer.Inline}, false},
		{"shard", timer.AutoSlack, &timer.Options{Shards: 1}, false},
		{"polled", timer.AutoSlack, nil, true},
	} {
		t.Run(c.name, func(t *testing.T) { stressQueue(t, mustNew(t, c.o).WithSlack(c.slack), c.polled) })
	}
	t.Run("boottime", func(t *testing.T) { stressQueue(t, mustNewOn(t, timer.Boottime), false) })
	t.Run("realtime", func(t *testing.T) {
		wantSteadyWall(t)
		stressQueue(t, mustNewOn(t, timer.Realtime), false)
	})
}

func stressQueue(t *testing.T, s *timer.Service, polled bool) {
	ops := suite.Scale(30_000)
	workers := 4 * runtime.GOMAXPROCS(0)
	r := newReceiver(workers * ops)
	handler := r.handle
	if polled {
		handler = nil
	}
	q := timer.NewQueue(s, handler)
	closeQueue(t, q)

	shared := make([]struct {
		sync.Mutex
		h  timer.Handle
		id int
	}, 64)
	stops := make([]atomic.Int32, len(r.counts))
	handles := make([]timer.Handle, len(r.counts))
	var ids, stopped, reset atomic.Int64
	var wg, pollers sync.WaitGroup
	quit := make(chan struct{})
	if polled {
		for range 2 {
			pollers.Go(func() {
				buf := make([]timer.Expired[due], 100)
				for {
					if n := q.Poll(buf); n > 0 {
						r.handle(buf[:n])
						continue
					}
					select {
					case <-quit:
						return
					case <-time.After(time.Millisecond):
					}
				}
			})
		}
	}
	for range workers {
		wg.Go(func() {
			for i := range ops {
				d := time.Duration(rand.Int64N(int64(5 * time.Millisecond)))
				if i%8 == 0 {
					d = time.Hour
				}
				slot := &shared[rand.IntN(len(shared))]
				slot.Lock()
				h, id := slot.h, slot.id
				slot.Unlock()
				switch rand.IntN(6) {
				case 0, 1:
					if q.Reset(h, d+5*time.Millisecond) {
						reset.Add(1)
					}
				case 2, 3:
					if q.Stop(h) {
						stopped.Add(1)
						stops[id].Add(1)
					}
				default:
					// No Reset brings it forward to before this.
					id := int(ids.Add(1)) - 1
					at := time.Now().Add(min(d, 5*time.Millisecond))
					h := q.Add(d, due{at, id})
					handles[id] = h
					slot.Lock()
					slot.h, slot.id = h, id
					slot.Unlock()
				}
				if i%500 == 0 {
					time.Sleep(time.Duration(rand.IntN(1000)) * time.Microsecond)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	suite.Await(t, "the operations ended", done)
	// What is left is an hour away, or about to be delivered.
	left := 0
	for id := range int(ids.Load()) {
		if q.Stop(handles[id]) {
			stopped.Add(1)
			stops[id].Add(1)
			left++
		}
	}
	suite.Eventually(t, "what was not stopped was delivered", func() bool {
		return r.total.Load()+stopped.Load() >= ids.Load()
	})
	close(quit)
	pollers.Wait()
	r.check(t)
	for id := range int(ids.Load()) {
		if n := r.counts[id].Load() + stops[id].Load(); n != 1 {
			t.Fatalf("value %d: delivered %d times, stopped %d times", id, r.counts[id].Load(), stops[id].Load())
		}
	}
	st := q.Stats()
	if st.Started != uint64(ids.Load()) || st.Stopped != uint64(stopped.Load()) || st.Fired != uint64(r.total.Load()) ||
		st.Reset != uint64(reset.Load()) || st.Pending != 0 || q.Len() != 0 {
		t.Errorf("Stats: %d started, %d stopped, %d fired, %d reset, %d pending; want %d, %d, %d, %d, 0",
			st.Started, st.Stopped, st.Fired, st.Reset, st.Pending, ids.Load(), stopped.Load(), r.total.Load(), reset.Load())
	}
	t.Logf("%d added, %d stopped, %d delivered, %d left", ids.Load(), stopped.Load(), r.total.Load(), left)
}

// A loop that polls gets everything, no more at a time than it asks for.
func TestQueuePoll(t *testing.T) {
	s := mustNew(t, nil)
	n := suite.Scale(20_000)
	r := newReceiver(n)
	q := timer.NewQueue[due](s, nil)
	if at, ok := q.Next(); ok {
		t.Errorf("Next of an empty queue = %v, true", at)
	}
	goroutines := runtime.NumGoroutine()
	var last time.Time
	for id := range n {
		d := time.Duration(rand.Int64N(int64(50 * time.Millisecond)))
		add(q, d, id)
		last = time.Now().Add(d)
	}
	buf := make([]timer.Expired[due], 64)
	for r.total.Load() < int64(n) {
		at, ok := q.Next()
		if !ok {
			t.Fatalf("Next says that nothing is pending, %d values are missing", int64(n)-r.total.Load())
		}
		time.Sleep(time.Until(at))
		if got := q.Poll(buf); got > 0 {
			r.handle(buf[:got])
		}
		if time.Since(last) > time.Minute {
			t.Fatal("values are never delivered")
		}
	}
	r.check(t)
	if got := q.Poll(buf); got != 0 || q.Len() != 0 {
		t.Errorf("%d values too many", got+q.Len())
	}
	if st := q.Stats(); st.Wakeups != 0 || s.Stats().Started != 0 {
		t.Errorf("a polled queue was woken %d times, and started %d timers", st.Wakeups, s.Stats().Started)
	}
	suite.Eventually(t, "no goroutine of a polled queue", func() bool { return runtime.NumGoroutine() <= goroutines })
	if err := q.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// What is not due is not delivered, however often it is asked for.
func TestQueuePollEarly(t *testing.T) {
	q := timer.NewQueue[int](nil, nil)
	closeQueue(t, q)
	q.Add(time.Hour, 1)
	q.AddAt(time.Now().Add(time.Hour), 2)
	buf := make([]timer.Expired[int], 1)
	if n := q.Poll(buf); n != 0 {
		t.Errorf("Poll = %d", n)
	}
	at, ok := q.Next()
	if d := time.Until(at); !ok || d < 59*time.Minute || d > 61*time.Minute {
		t.Errorf("Next in %v, %t; want in an hour", d, ok)
	}
	q.Add(-1, 3)
	q.AddAt(time.Now().Add(-time.Hour), 4)
	got := 0
	for range 2 {
		if q.Poll(buf) == 1 {
			got += buf[0].Value
		}
	}
	if n := q.Poll(buf); n != 0 || got != 7 {
		t.Errorf("delivered a sum of %d, then %d more; want 7, 0", got, n)
	}
	if n := q.Poll(nil); n != 0 {
		t.Errorf("Poll(nil) = %d", n)
	}
}

func TestQueueMisuse(t *testing.T) {
	wantPanic := func(what string, f func()) {
		t.Helper()
		defer func() {
			t.Helper()
			if got := recover(); got != what {
				t.Errorf("panic value %v, want %q", got, what)
			}
		}()
		f()
	}
	var zero timer.Queue[int]
	wantPanic("timer: Add called on uninitialized Queue", func() { zero.Add(0, 1) })
	wantPanic("timer: AddAt called on uninitialized Queue", func() { zero.AddAt(time.Now(), 1) })
	wantPanic("timer: AddAt called on uninitialized Queue", func() { zero.AddAt(time.Now().Round(0), 1) })
	wantPanic("timer: Reset called on uninitialized Queue", func() { zero.Reset(timer.Handle{}, 0) })
	wantPanic("timer: ResetAt called on uninitialized Queue", func() { zero.ResetAt(timer.Handle{}, time.Now()) })
	wantPanic("timer: Stop called on uninitialized Queue", func() { zero.Stop(timer.Handle{}) })
	if _, ok := zero.Next(); ok || zero.Len() != 0 || zero.Poll(make([]timer.Expired[int], 1)) != 0 {
		t.Error("something is pending in a zero Queue")
	}
	// As of any nil pointer: a panic, which can be recovered.
	for _, use := range []func(q *timer.Queue[int]){
		func(q *timer.Queue[int]) { q.Add(0, 1) },
		func(q *timer.Queue[int]) { q.AddAt(time.Now(), 1) },
		func(q *timer.Queue[int]) { q.Reset(timer.Handle{}, 0) },
		func(q *timer.Queue[int]) { q.Stop(timer.Handle{}) },
		func(q *timer.Queue[int]) { q.Poll(nil) },
	} {
		func() {
			defer func() {
				if _, ok := recover().(runtime.Error); !ok {
					t.Error("no panic of the runtime for a nil Queue")
				}
			}()
			use(nil)
		}()
	}
	for _, handler := range []func([]timer.Expired[int]){nil, func([]timer.Expired[int]) {}} {
		s, err := timer.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		q := timer.NewQueue(s, handler)
		h := q.Add(time.Hour, 1)
		if handler != nil {
			wantPanic("timer: Poll called on a Queue with a handler", func() { q.Poll(nil) })
		}
		orphan := timer.NewQueue(s, handler)
		oh := orphan.Add(time.Hour, 1)
		if err := q.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		if q.Close() == nil {
			t.Error("a second Close gave no error")
		}
		at := time.Now().Add(time.Hour)
		wantPanic("timer: Add called on closed Queue", func() { q.Add(0, 1) })
		wantPanic("timer: AddAt called on closed Queue", func() { q.AddAt(at, 1) })
		wantPanic("timer: Reset called on closed Queue", func() { q.Reset(h, 0) })
		wantPanic("timer: ResetAt called on closed Queue", func() { q.ResetAt(h, at) })
		if _, ok := q.Next(); ok || q.Stop(h) || q.Len() != 0 || q.Stats().Pending != 0 {
			t.Error("something is pending in a closed queue")
		}

		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		wantPanic("timer: NewQueue called on closed Service", func() { timer.NewQueue(s, handler) })
		wantPanic("timer: Add called on Queue of closed Service", func() { orphan.Add(0, 1) })
		wantPanic("timer: AddAt called on Queue of closed Service", func() { orphan.AddAt(at, 1) })
		wantPanic("timer: Reset called on Queue of closed Service", func() { orphan.Reset(oh, 0) })
		wantPanic("timer: ResetAt called on Queue of closed Service", func() { orphan.ResetAt(oh, at) })
		if _, ok := orphan.Next(); ok {
			t.Error("a queue of a closed service wants to be polled")
		}
		if handler == nil && orphan.Poll(make([]timer.Expired[int], 1)) != 0 {
			t.Error("a queue of a closed service delivered")
		}
		// None of the panics has left a lock behind.
		orphan.Stop(oh)
		if err := orphan.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
}

// What is pending at Close is never delivered.
func TestQueueClose(t *testing.T) {
	s := mustNew(t, nil)
	for d := 50 * time.Millisecond; ; d *= 2 {
		var delivered atomic.Int64
		q := timer.NewQueue(s, func(batch []timer.Expired[int]) { delivered.Add(int64(len(batch))) })
		start := time.Now()
		for k := range 1000 {
			q.Add(d+time.Duration(k)*time.Microsecond, k)
		}
		_ = q.Close()
		if time.Since(start) > d && d < 10*time.Second {
			continue // A slow machine: it proves nothing.
		}
		time.Sleep(d + 20*time.Millisecond)
		if n := delivered.Load(); n != 0 {
			t.Errorf("%d values delivered after Close", n)
		}
		if n := s.Stats().Pending; n != 0 {
			t.Errorf("%d timers of the service are left", n)
		}
		return
	}
}

// Close in the handler, and while everything else goes on.
func TestQueueCloseConcurrent(t *testing.T) {
	for round := range suite.Scale(100) {
		s := mustNew(t, nil)
		done := make(chan error, 1)
		var q *timer.Queue[int]
		ready := make(chan struct{})
		q = timer.NewQueue(s, func(batch []timer.Expired[int]) {
			<-ready
			for _, x := range batch {
				if x.Value == 500 {
					done <- q.Close()
				}
			}
		})
		close(ready)
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				defer func() {
					if r := recover(); r != nil && r != "timer: Add called on closed Queue" && r != "timer: Reset called on closed Queue" {
						t.Errorf("panic value %v", r)
					}
				}()
				for k := 0; ; k++ {
					h := q.Add(time.Duration(k%700)*time.Microsecond, k%499)
					q.Reset(h, time.Duration(k%300)*time.Microsecond)
					if k%3 == 0 {
						q.Stop(h)
					}
					q.Len()
					if k%64 == 0 {
						time.Sleep(10 * time.Microsecond)
					}
				}
			})
		}
		func() {
			// It may be another's Close already: this one is the only one.
			q.Add(time.Duration(round)*10*time.Microsecond, 500)
		}()
		if err := suite.Await(t, "Close returned in the handler", done); err != nil {
			t.Errorf("Close: %v", err)
		}
		wg.Wait()
		if n := s.Stats().Pending; n > 0 {
			suite.Eventually(t, "the service has no timer left", func() bool { return s.Stats().Pending == 0 })
		}
	}
}

// Queues leave no goroutine, file or timer behind.
func TestQueueLeaks(t *testing.T) {
	use := func(s *timer.Service, i int) {
		var wg sync.WaitGroup
		var handler func([]timer.Expired[int])
		if i%4 != 0 {
			wg.Add(1)
			handler = func([]timer.Expired[int]) { wg.Done() }
		}
		q := timer.NewQueue(s.WithSlack(time.Duration(i%3)*time.Millisecond), handler)
		q.Add(100*time.Microsecond, 1)
		q.Add(time.Hour, 2)
		wg.Wait()
		if err := q.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	service := func(queues int) {
		s, err := timer.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range queues {
			use(s, i)
		}
		suite.Eventually(t, "the service has no timer left", func() bool { return s.Stats().Pending == 0 })
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	service(8)
	goroutines, files := runtime.NumGoroutine(), openFiles()
	service(200)
	suite.Eventually(t, fmt.Sprintf("%d goroutines again", goroutines), func() bool { return runtime.NumGoroutine() <= goroutines })
	suite.Eventually(t, fmt.Sprintf("%d open files again", files), func() bool { return openFiles() <= files })
}

// In a steady state nothing is allocated.
func TestQueueAllocs(t *testing.T) {
	q := timer.NewQueue(nil, func([]timer.Expired[[3]int]) {})
	closeQueue(t, q)
	polled := timer.NewQueue[[3]int](nil, nil)
	closeQueue(t, polled)
	buf := make([]timer.Expired[[3]int], 10)
	var ring [100]timer.Handle
	for name, f := range map[string]func(k int){
		"stop":   func(k int) { q.Stop(ring[k%100]); ring[k%100] = q.Add(time.Hour, [3]int{}) },
		"reset":  func(k int) { q.Reset(ring[k%100], time.Minute+time.Duration(k)*time.Millisecond) },
		"expire": func(k int) { q.Add(0, [3]int{}) },
		"poll":   func(k int) { polled.Add(0, [3]int{}); polled.Poll(buf) },
		"next":   func(k int) { polled.Next() },
	} {
		k := 0
		for range 5000 {
			f(k)
			k++
		}
		if allocs := testing.AllocsPerRun(5000, func() { f(k); k++ }); allocs >= 1 {
			t.Errorf("%s: %v allocations", name, allocs)
		}
	}
}

// heapSize is the size of what the program refers to.
func heapSize() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A pending timer takes 40 bytes at most beside its value, and gives them back.
func TestQueueMemory(t *testing.T) {
	const n = 1 << 20
	q := timer.NewQueue(nil, func([]timer.Expired[uint64]) {})
	handles := make([]timer.Handle, n)
	before := heapSize()
	for k := range handles {
		handles[k] = q.Add(time.Hour, uint64(k))
	}
	if each := float64(heapSize()-before)/n - 8; each > 40 {
		t.Errorf("%.1f bytes a pending timer, want 40 at most", each)
	} else {
		t.Logf("%.1f bytes a pending timer", each)
	}
	for _, h := range handles {
		q.Stop(h)
	}
	if left := heapSize() - before; left > n*48/4 {
		t.Errorf("%d bytes are left when all timers have been stopped", left)
	}
	if err := q.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if left := heapSize() - before; left > n {
		t.Errorf("%d bytes are left after Close", left)
	}
	runtime.KeepAlive(handles)
}

// A queue does not keep values that it has delivered, or that have been stopped.
func TestQueueLetsGo(t *testing.T) {
	delivered := make(chan struct{}, 1)
	var goexit atomic.Bool
	q := timer.NewQueue(nil, func([]timer.Expired[*[64]byte]) {
		delivered <- struct{}{}
		if goexit.Load() {
			runtime.Goexit()
		}
	})
	gone := func(what string, p weak.Pointer[[64]byte]) {
		t.Helper()
		suite.Eventually(t, what+": the value was collected", func() bool {
			runtime.GC()
			return p.Value() == nil
		})
	}
	value := func(d time.Duration) (timer.Handle, weak.Pointer[[64]byte]) {
		v := new([64]byte)
		return q.Add(d, v), weak.Make(v)
	}
	h, p := value(time.Hour)
	runtime.GC()
	if p.Value() == nil {
		t.Error("a pending value was collected")
	}
	q.Stop(h)
	gone("Stop", p)

	for _, d := range []time.Duration{0, 100 * time.Millisecond} {
		_, p = value(d)
		suite.Await(t, "the value was delivered", delivered)
		gone("delivery", p)
	}

	goexit.Store(true)
	_, p = value(0)
	suite.Await(t, "the value was delivered", delivered)
	gone("Goexit", p)

	_, p = value(time.Hour)
	if err := q.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	gone("Close", p)
}
