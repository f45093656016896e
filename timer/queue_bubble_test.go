package timer_test

import (
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/detent-go/detent/timer"
)

// A queue made inside a bubble is exact on the bubble's time.
func TestBubbleQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		n := 0
		q := timer.NewQueue(timer.Default().WithSlack(time.Minute), func(batch []timer.Expired[time.Duration]) {
			for _, x := range batch {
				wantPassed(t, "a value was delivered", start, x.Value)
				n++
			}
		})
		for _, d := range []time.Duration{0, 1, time.Millisecond, 1234567, time.Second, time.Hour, 30 * year} {
			q.Add(d, d)
			q.AddAt(start.Add(d), d)
			q.Reset(q.Add(time.Minute, d), d)
			q.ResetAt(q.Add(d/2+1, d), start.Add(d))
		}
		never := q.Add(math.MaxInt64, 0)
		stopped := q.Add(time.Hour, 0)
		if !q.Stop(stopped) || q.Stop(stopped) {
			t.Error("Stop: want true, then false")
		}
		time.Sleep(40 * year)
		synctest.Wait()
		if n != 4*7 {
			t.Errorf("%d values were delivered, want %d", n, 4*7)
		}
		if !q.Stop(never) {
			t.Error("1<<63-1 was delivered")
		}
		if st := q.Stats(); st.Fired != 4*7 || st.Lateness.Max() != 0 {
			t.Errorf("%d fired, the latest by %v; want %d, exactly", st.Fired, st.Lateness.Max(), 4*7)
		}
		if err := q.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
}

func TestBubbleQueuePoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		q := timer.NewQueue[int](nil, nil)
		for k := range 100 {
			q.Add(time.Duration(k)*time.Second, k)
		}
		buf := make([]timer.Expired[int], 10)
		for k := range 100 {
			at, ok := q.Next()
			if want := start.Add(time.Duration(k) * time.Second); !ok || !at.Equal(want) {
				t.Fatalf("Next = %v, %t, want %v", at, ok, want)
			}
			time.Sleep(time.Until(at))
			if n := q.Poll(buf); n != 1 || buf[0].Value != k {
				t.Fatalf("Poll = %d, %v, want 1, %d", n, buf[0].Value, k)
			}
		}
		if _, ok := q.Next(); ok {
			t.Error("something is left")
		}
	})
}

// A handler that blocks, closes the queue, or adds.
func TestBubbleQueueHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sum atomic.Int64
		var q *timer.Queue[int]
		q = timer.NewQueue(nil, func(batch []timer.Expired[int]) {
			time.Sleep(time.Hour)
			for _, x := range batch {
				sum.Add(int64(x.Value))
				switch x.Value {
				case 1:
					q.Add(time.Minute, 10)
				case 100:
					_ = q.Close()
				}
			}
		})
		q.Add(time.Second, 1)
		q.Add(time.Minute, 1000)
		time.Sleep(2*time.Hour + time.Second)
		synctest.Wait()
		if got := sum.Load(); got != 1001 {
			t.Errorf("sum %d after two hours, want 1001", got)
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if got := sum.Load(); got != 1011 {
			t.Errorf("sum %d after four hours, want 1011", got)
		}
		q.Add(0, 100)
		pending := q.Add(2*time.Hour, 10000)
		time.Sleep(4 * time.Hour)
		synctest.Wait()
		if got := sum.Load(); got != 1111 || q.Stop(pending) {
			t.Errorf("sum %d after Close, want 1111", got)
		}
	})
}

// Across the border of a bubble there is no clock.
func TestBubbleQueueBorder(t *testing.T) {
	wantPanic := func(t *testing.T, want string, f func()) {
		t.Helper()
		defer func() {
			t.Helper()
			if got := recover(); got != want {
				t.Errorf("panic value %v, want %q", got, want)
			}
		}()
		f()
	}
	var out, in []*timer.Queue[int]
	for _, handler := range []func([]timer.Expired[int]){nil, func([]timer.Expired[int]) {}} {
		out = append(out, timer.NewQueue(nil, handler))
	}
	buf := make([]timer.Expired[int], 1)
	var mu sync.Mutex
	fixed := timer.NewQueue(timer.Default().WithSlack(time.Second), func([]timer.Expired[int]) {})
	far, soon := time.Now().Add(2*time.Hour), time.Now().Add(time.Hour)
	pending := fixed.AddAt(far, 1)
	synctest.Test(t, func(t *testing.T) {
		for _, q := range out {
			const where = " called in a synctest bubble on a Queue made outside"
			wantPanic(t, "timer: Add"+where, func() { q.Add(time.Second, 1) })
			wantPanic(t, "timer: AddAt"+where, func() { q.AddAt(time.Now(), 1) })
			wantPanic(t, "timer: Next"+where, func() { q.Next() })
			if n := q.Len(); n != 0 {
				t.Errorf("Len = %d after a panic", n)
			}
		}
		const where = " called in a synctest bubble on a Queue made outside"
		wantPanic(t, "timer: Poll"+where, func() { out[0].Poll(buf) })
		// The clock is needed here to set what wakes the queue.
		wantPanic(t, "timer: AddAt"+where, func() { fixed.AddAt(soon, 1) })
		wantPanic(t, "timer: ResetAt"+where, func() { fixed.ResetAt(pending, soon) })
		mu.Lock()
		in = append(in, timer.NewQueue[int](nil, nil), timer.NewQueue(nil, func([]timer.Expired[int]) {}))
		mu.Unlock()
		for _, q := range in {
			q.Stop(q.Add(time.Hour, 1))
		}
	})
	if n := fixed.Len(); n != 1 || fixed.Close() != nil {
		t.Errorf("Len = %d after panics, want 1", n)
	}
	for _, q := range out {
		h := q.Add(time.Hour, 1)
		synctest.Test(t, func(t *testing.T) {
			const where = " called in a synctest bubble on a Queue made outside"
			wantPanic(t, "timer: Reset"+where, func() { q.Reset(h, time.Hour) })
			wantPanic(t, "timer: ResetAt"+where, func() { q.ResetAt(h, time.Now()) })
			if !q.Stop(h) {
				t.Error("Stop in a bubble of a pending value of a queue made outside = false")
			}
		})
		if err := q.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	for _, q := range in {
		const where = " called outside of the synctest bubble that the Queue was made in"
		wantPanic(t, "timer: Add"+where, func() { q.Add(time.Second, 1) })
		wantPanic(t, "timer: AddAt"+where, func() { q.AddAt(time.Now(), 1) })
		wantPanic(t, "timer: Stop"+where, func() { q.Stop(timer.Handle{}) })
		wantPanic(t, "timer: Next"+where, func() { q.Next() })
		wantPanic(t, "timer: Close"+where, func() { _ = q.Close() })
		if n := q.Len(); n != 0 {
			t.Errorf("Len = %d", n)
		}
	}
	wantPanic(t, "timer: Poll called outside of the synctest bubble that the Queue was made in", func() { in[0].Poll(buf) })
}
