package timer_test

import (
	"context"
	"errors"
	"math"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/detent-go/detent/internal/suite"
	"github.com/detent-go/detent/timer"
)

// dawn is where the virtual time of the tests begins.
var dawn = time.Date(2001, 2, 3, 4, 5, 6, 7, time.UTC)

func newManual(t testing.TB, o *timer.Options) *timer.Manual {
	t.Helper()
	m, err := timer.NewManual(dawn, o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// received returns the value in c, as a distance from dawn, or -1.
func received(c <-chan time.Time) time.Duration {
	select {
	case v := <-c:
		return v.Sub(dawn)
	default:
		return -1
	}
}

// Every face of a service works on virtual time, and does nothing before.
func TestManualFaces(t *testing.T) {
	m := newManual(t, nil)
	if !m.Now().Equal(dawn) || m.Now() != m.Now().Round(0) {
		t.Fatalf("Now = %v", m.Now())
	}
	var calledAt time.Duration = -1
	f := m.AfterFunc(time.Second, func() { calledAt = m.Now().Sub(dawn) })
	tm, after := m.NewTimer(time.Second), m.After(time.Second)
	tk, tick := m.NewTicker(400*time.Millisecond), m.Tick(time.Second)
	ctx, cancel := m.WithTimeout(context.Background(), time.Second)
	defer cancel()
	until, cancel := m.WithDeadline(context.Background(), dawn.Add(time.Second))
	defer cancel()
	child, cancel := context.WithCancel(ctx)
	defer cancel()
	q := timer.NewQueue(m.Service, func(batch []timer.Expired[int]) {
		for _, x := range batch {
			if x.Value != 7 || m.Now().Sub(dawn) != time.Second {
				t.Errorf("the queue delivered %d at %v", x.Value, m.Now().Sub(dawn))
			}
		}
	})
	q.Add(time.Second, 7)
	polled := timer.NewQueue[int](m.Service, nil)
	polled.AddAt(dawn.Add(time.Second), 8)
	second := dawn.Add(time.Second)
	calledAgainAt := time.Duration(-1)
	m.AfterFuncAt(second, func() { calledAgainAt = m.Now().Sub(dawn) })
	reset := m.NewTimerAt(second.Add(time.Hour))
	reset.ResetAt(second)
	m.SleepUntil(dawn)
	if err := m.SleepUntilContext(t.Context(), dawn.Add(-1)); err != nil {
		t.Error(err)
	}
	slept := make(chan time.Duration)
	for _, sleep := range []func(){
		func() { m.Sleep(time.Second) },
		func() { m.SleepUntil(second) },
		func() {
			if err := m.SleepContext(t.Context(), time.Second); err != nil {
				t.Error(err)
			}
		},
		func() {
			if err := m.SleepUntilContext(ctx, second); err != nil && err != context.DeadlineExceeded {
				t.Error(err)
			}
		},
	} {
		go func() {
			sleep()
			slept <- m.Now().Sub(dawn)
		}()
	}
	if err := m.AwaitPending(t.Context(), 14); err != nil {
		t.Fatal(err)
	}
	if next, ok := m.Next(); !ok || next.Sub(dawn) != 400*time.Millisecond {
		t.Errorf("Next = %v, %v", next, ok)
	}
	if at, ok := polled.Next(); !ok || at.Sub(dawn) != time.Second {
		t.Errorf("Next of the queue = %v, %v", at, ok)
	}
	for k, want := range []time.Duration{400, 800} {
		m.AdvanceTo(dawn.Add(want * time.Millisecond))
		if got := received(tk.C); got != want*time.Millisecond {
			t.Errorf("tick %d at %v", k, got)
		}
	}
	m.Advance(200*time.Millisecond - 1)
	buf := make([]timer.Expired[int], 4)
	if calledAt != -1 || calledAgainAt != -1 || len(reset.C)+len(tm.C)+len(after)+len(tick)+len(tk.C) != 0 || ctx.Err() != nil || until.Err() != nil || polled.Poll(buf) != 0 || q.Len() != 1 {
		t.Fatal("something fired a nanosecond early")
	}
	if s := ctx.(interface{ String() string }).String(); !strings.Contains(s, "[1ns]") {
		t.Errorf("the context has a nanosecond left and says %s", s)
	}
	m.Advance(1)
	if calledAt != time.Second || calledAgainAt != time.Second {
		t.Errorf("the callbacks were called at %v and %v", calledAt, calledAgainAt)
	}
	for name, c := range map[string]<-chan time.Time{"NewTimer": tm.C, "ResetAt": reset.C, "After": after, "Tick": tick} {
		if got := received(c); got != time.Second {
			t.Errorf("%s: received %v", name, got)
		}
	}
	for range 4 {
		if got := suite.Await(t, "the sleeper woke", slept); got != time.Second {
			t.Errorf("slept until %v", got)
		}
	}
	for _, ctx := range []context.Context{ctx, until, child} {
		if at, ok := ctx.Deadline(); !ok || !at.Equal(dawn.Add(time.Second)) || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			t.Errorf("context: %v, deadline %v %v", ctx.Err(), at, ok)
		}
		select {
		case <-ctx.Done():
		default:
			t.Error("the context's channel is open")
		}
	}
	if q.Len() != 0 || polled.Poll(buf) != 1 || buf[0].Value != 8 {
		t.Errorf("queues: %d left, polled %v", q.Len(), buf[0])
	}
	if f.Stop() || tm.Stop() {
		t.Error("Stop after firing = true")
	}
	tk.Stop()
	if st := m.Stats(); st.Pending != 1 || st.Lateness.Max() != 0 {
		t.Errorf("%d pending, latest %v", st.Pending, st.Lateness.Max())
	}
}

// A year of timers, each of which starts the next one, passes in one call.
func TestManualYear(t *testing.T) {
	m := newManual(t, nil)
	const year = 365 * 24 * time.Hour
	hours, minutes := 0, 0
	var hourly *timer.Timer
	hourly = m.AfterFunc(time.Hour, func() {
		hours++
		if at := m.Now().Sub(dawn); at != time.Duration(hours)*time.Hour {
			t.Fatalf("hour %d at %v", hours, at)
		}
		hourly.Reset(time.Hour)
	})
	for k := range 60 {
		m.AfterFunc(time.Duration(k)*6*24*time.Hour, func() { minutes++ })
	}
	tk := m.NewTicker(24 * time.Hour)
	m.Advance(year)
	if hours != 365*24 || minutes != 60 || m.Now().Sub(dawn) != year {
		t.Errorf("%d hours, %d others, at %v", hours, minutes, m.Now().Sub(dawn))
	}
	// A ticker drops ticks for a slow receiver, as always.
	if got := received(tk.C); got != 24*time.Hour {
		t.Errorf("tick at %v", got)
	}
	if got := received(tk.C); got != -1 {
		t.Errorf("another tick at %v", got)
	}
}

// Goroutines that sleep in a loop keep up with Run, and with AwaitPending.
func TestManualRun(t *testing.T) {
	m := newManual(t, nil)
	const sleepers, rounds = 8, 200
	var woken [sleepers]int
	var wg sync.WaitGroup
	for k := range sleepers {
		wg.Go(func() {
			period := time.Duration(k+1) * time.Second
			for at := period; ; at += period {
				m.Sleep(period)
				if m.Now().Sub(dawn) != at {
					return // too late, or all is over
				}
				woken[k]++
			}
		})
	}
	ticks := 0
	tk := m.NewTicker(time.Second)
	done := make(chan struct{})
	wg.Go(func() {
		for {
			select {
			case <-tk.C:
				ticks++
			case <-done:
				return
			}
		}
	})
	if !m.Run(sleepers * rounds * time.Second) {
		t.Fatal("the goroutines never settled")
	}
	close(done)
	tk.Stop()
	m.Advance(time.Hour) // ends those whose period does not divide the whole
	wg.Wait()
	if ticks != sleepers*rounds {
		t.Errorf("%d of %d ticks received", ticks, sleepers*rounds)
	}
	for k, n := range woken {
		if want := sleepers * rounds / (k + 1); n != want {
			t.Errorf("sleeper %d: woken %d times in time, want %d", k, n, want)
		}
	}
}

func TestManualAwaitPending(t *testing.T) {
	m := newManual(t, nil)
	const n, rounds = 20, 50
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			for range rounds {
				m.WithSlack(time.Minute).Sleep(time.Second)
			}
		})
	}
	for range rounds {
		if err := m.AwaitPending(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		at, _ := m.Next()
		m.AdvanceTo(at) // and not beyond, lest some sleep twice
	}
	wg.Wait()
	if st := m.Stats(); st.Fired != n*rounds || st.Pending != 0 {
		t.Errorf("%d fired, %d pending", st.Fired, st.Pending)
	}
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	waited := make(chan error)
	go func() { waited <- m.AwaitPending(ctx, 1) }()
	cancel(why)
	if err := suite.Await(t, "AwaitPending returned", waited); err != why {
		t.Errorf("AwaitPending = %v", err)
	}
	if err := m.AwaitPending(ctx, 0); err != nil {
		t.Errorf("AwaitPending of none = %v", err)
	}
}

// Settle waits for a chain of goroutines that the clock has set going.
func TestManualSettle(t *testing.T) {
	m := newManual(t, nil)
	for round := range 100 {
		var reached atomic.Int64
		stages := 30
		chans := make([]chan int, stages)
		for k := range chans {
			chans[k] = make(chan int)
		}
		var wg sync.WaitGroup
		wg.Go(func() { chans[0] <- len(<-wrap(m.After(time.Second))) })
		for k := range stages {
			wg.Go(func() {
				v := <-chans[k]
				for range 1000 {
					v = v*31 + k
				}
				runtime.Gosched()
				reached.Add(1)
				if k+1 < stages {
					chans[k+1] <- v
				}
			})
		}
		if err := m.AwaitPending(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		if n := reached.Load(); n != 0 {
			t.Fatalf("round %d: %d stages went ahead of the clock", round, n)
		}
		m.Advance(time.Second)
		if !m.Settle() {
			t.Fatalf("round %d: never settled", round)
		}
		if n := reached.Load(); n != int64(stages) {
			t.Fatalf("round %d: settled at stage %d of %d", round, n, stages)
		}
		wg.Wait()
	}
}

// wrap puts a goroutine between c and the receiver.
func wrap(c <-chan time.Time) <-chan []time.Time {
	out := make(chan []time.Time)
	go func() { out <- []time.Time{<-c} }()
	return out
}

// A callback can advance the clock that is being advanced, start and stop what it
// likes, and close the service.
func TestManualNested(t *testing.T) {
	m := newManual(t, &timer.Options{Shards: 3})
	var order []string
	at := func(d time.Duration, name string, f func()) *timer.Timer {
		return m.AfterFunc(d, func() {
			order = append(order, name+" "+m.Now().Sub(dawn).String())
			if f != nil {
				f()
			}
		})
	}
	at(time.Second, "a", func() {
		m.Advance(2 * time.Second) // b and c come in here
		order = append(order, "a returns "+m.Now().Sub(dawn).String())
	})
	at(2*time.Second, "b", func() { m.Advance(0); m.AdvanceTo(dawn) })
	at(3*time.Second, "c", func() { at(0, "d", nil) })
	at(4*time.Second, "e", nil)
	at(5*time.Second, "f", func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	at(6*time.Second, "g", nil)
	m.Advance(4 * time.Second)
	m.Advance(10 * time.Second)
	want := []string{"a 1s", "b 2s", "c 3s", "d 3s", "a returns 3s", "e 4s", "f 5s"}
	if !slices.Equal(order, want) {
		t.Errorf("got  %q\nwant %q", order, want)
	}
	if got := m.Now().Sub(dawn); got != 14*time.Second {
		t.Errorf("the clock stands at %v", got)
	}
}

// Whatever several goroutines do at once, what is due fires once, never early,
// and the clock never goes back.
func TestManualConcurrent(t *testing.T) {
	for _, o := range []*timer.Options{nil, {Shards: 4}} {
		m := newManual(t, o)
		// As many as are started: Advance does not return while others go on to start
		// what is due at once.
		const advancers, steps, starts = 4, 300, 500
		var fired, slept atomic.Int64
		var wg, all sync.WaitGroup
		stop := make(chan struct{})
		var started, sleeps int64
		wg.Go(func() {
			for range starts {
				for _, d := range []time.Duration{0, 1, 500, time.Microsecond, time.Millisecond} {
					started++
					all.Add(1)
					due := m.Now().Add(d)
					m.AfterFunc(d, func() {
						if now := m.Now(); now.Before(due) {
							t.Errorf("fired %v early", due.Sub(now))
						}
						fired.Add(1)
						all.Done()
					})
				}
				runtime.Gosched()
			}
		})
		wg.Go(func() {
			for range starts {
				select {
				case <-stop:
					return
				default:
				}
				sleeps++
				due := m.Now().Add(time.Microsecond)
				m.Sleep(time.Microsecond)
				if now := m.Now(); now.Before(due) {
					t.Errorf("slept %v too little", due.Sub(now))
				}
				slept.Add(1)
			}
		})
		var advances sync.WaitGroup
		for range advancers {
			advances.Go(func() {
				last := m.Now()
				for k := range steps {
					m.Advance(time.Duration(k) * time.Microsecond)
					now := m.Now()
					if now.Sub(last) < time.Duration(k)*time.Microsecond {
						t.Errorf("Advance(%dus) went from %v to %v", k, last, now)
					}
					last = now
					m.Next()
					runtime.Gosched()
				}
			})
		}
		advances.Wait()
		close(stop)
		// The sleeper may sleep still, or fall asleep yet.
		done := make(chan struct{})
		go func() { wg.Wait(); close(done) }()
		for ended := false; !ended; {
			m.Advance(time.Second)
			select {
			case <-done:
				ended = true
			default:
				runtime.Gosched()
			}
		}
		m.Advance(time.Second)
		all.Wait()
		if fired.Load() != started || slept.Load() != sleeps {
			t.Errorf("%d of %d fired, %d of %d woke", fired.Load(), started, slept.Load(), sleeps)
		}
		if st := m.Stats(); st.Pending != 0 || st.Started != st.Fired {
			t.Errorf("%d pending, %d started, %d fired", st.Pending, st.Started, st.Fired)
		}
	}
}

// A callback that panics or ends its goroutine does so to Advance, and the rest
// fires when the clock is advanced again, not before.
func TestManualPanic(t *testing.T) {
	for want, end := range map[any]func(){"out": func() { panic("out") }, nil: runtime.Goexit} {
		m := newManual(t, nil)
		var fired atomic.Int64
		const n = 10
		for range n {
			m.AfterFunc(time.Second, func() { fired.Add(1); end() })
		}
		ended := make(chan any)
		for k := range int64(n) {
			go func() {
				defer func() { ended <- recover() }()
				m.AdvanceTo(dawn.Add(time.Minute))
			}()
			if got := suite.Await(t, "Advance ended", ended); got != want {
				t.Errorf("Advance ended with %v, want %v", got, want)
			}
			m.Settle()
			if got := fired.Load(); got != k+1 || m.Now().Sub(dawn) != time.Second {
				t.Errorf("after %d calls of Advance: %d fired, at %v", k+1, got, m.Now().Sub(dawn))
			}
		}
		m.AdvanceTo(dawn.Add(time.Minute))
		if fired.Load() != n || m.Now().Sub(dawn) != time.Minute {
			t.Errorf("%d fired, at %v", fired.Load(), m.Now().Sub(dawn))
		}
	}
}

// What a handler or the function of TickFunc panics with goes up through Advance too,
// and neither the queue nor the interval is the worse for it.
func TestManualPanicDelivered(t *testing.T) {
	m := newManual(t, nil)
	panics := func(f func()) (value any) {
		defer func() { value = recover() }()
		f()
		return nil
	}
	values, ticks := 0, 0
	q := timer.NewQueue(m.Service, func(batch []timer.Expired[int]) {
		if values += len(batch); values == 1 {
			panic("handler")
		}
	})
	for k := range 100 {
		q.Add(time.Duration(k+1)*time.Second, k)
	}
	if got := panics(func() { m.Advance(time.Hour) }); got != "handler" {
		t.Errorf("Advance ended with %v", got)
	}
	m.Advance(time.Hour)
	if values != 100 || q.Len() != 0 {
		t.Errorf("%d values were delivered, %d are pending", values, q.Len())
	}
	iv := m.TickFunc(time.Second, func(timer.Ticked) {
		if ticks++; ticks == 2 {
			panic("function")
		}
	}, nil)
	if got := panics(func() { m.Advance(10 * time.Second) }); got != "function" {
		t.Errorf("Advance ended with %v", got)
	}
	m.Advance(8 * time.Second)
	if ticks != 10 {
		t.Errorf("%d ticks in 10 s", ticks)
	}
	iv.Stop()
}

// The clock stops at the end of time, where nothing fires for ever.
func TestManualEnd(t *testing.T) {
	coarse, fine := time.Second, time.Microsecond
	for _, slack := range []*time.Duration{nil, &coarse, &fine} {
		m := newManual(t, &timer.Options{Slack: slack})
		n := 0
		count := func() { n++ }
		m.AfterFunc(math.MaxInt64, count)
		m.AfterFunc(math.MaxInt64-1, count)
		m.AfterFunc(time.Hour, count)
		m.NewTicker(math.MaxInt64 / 2)
		m.NewTicker(math.MaxInt64)
		q := timer.NewQueue(m.Service, func([]timer.Expired[int]) { n++ })
		q.Add(math.MaxInt64, 1)
		polled := timer.NewQueue[int](m.Service, nil)
		polled.Add(math.MaxInt64, 1)
		for range 3 {
			m.Advance(math.MaxInt64)
			m.AdvanceTo(time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC))
		}
		end := m.Now()
		if n != 1 || end.Sub(dawn) < math.MaxInt64-time.Hour {
			t.Errorf("%d fired, the end is after %v", n, end.Sub(dawn))
		}
		m.AfterFunc(0, count)
		m.AfterFunc(time.Nanosecond, count)
		m.AfterFunc(time.Hour, count)
		m.Advance(time.Hour)
		if slack == nil && n != 2 {
			t.Errorf("at the end of time %d fired", n)
		}
		if !m.Now().Equal(end) {
			t.Errorf("the clock went on to %v", m.Now().Sub(dawn))
		}
		if !m.Run(time.Hour) {
			t.Error("Run at the end of time = false")
		}
		if at, ok := m.Next(); ok {
			t.Errorf("Next = %v", at.Sub(dawn))
		}
	}
}

// Next is exact, however timers have been stopped and reset, and whatever slack
// they have.
func TestManualNext(t *testing.T) {
	m := newManual(t, nil)
	if at, ok := m.Next(); ok {
		t.Errorf("Next of nothing = %v", at)
	}
	var firedAt time.Time
	note := func() { firedAt = m.Now() }
	for _, slack := range []time.Duration{0, 30 * time.Microsecond, time.Millisecond, time.Second} {
		s := m.WithSlack(slack)
		tm, other := s.AfterFunc(time.Minute, note), s.AfterFunc(2*time.Minute, note)
		tm.Reset(time.Hour) // pushed back: it stays filed where it was
		other.Reset(40 * time.Minute)
		for range 2 {
			want, ok := m.Next()
			if !ok {
				t.Fatalf("slack %v: nothing is next", slack)
			}
			m.AdvanceTo(want.Add(-1))
			if !firedAt.Before(want.Add(-1)) {
				t.Errorf("slack %v: fired at %v, before Next, %v", slack, firedAt, want)
			}
			m.Advance(1)
			if !firedAt.Equal(want) {
				t.Errorf("slack %v: fired at %v, want Next, %v", slack, firedAt, want)
			}
		}
		if at, ok := m.Next(); ok {
			t.Errorf("slack %v: Next = %v, of nothing", slack, at)
		}
	}
	m.AfterFunc(0, note)
	if at, ok := m.Next(); !ok || !at.Equal(m.Now()) {
		t.Errorf("Next = %v, %v, want now", at, ok)
	}
}

func TestManualMisuse(t *testing.T) {
	for _, o := range []timer.Options{{Shards: -1}, {Callbacks: 7}, {Slack: new(time.Duration)}} {
		if o.Slack != nil {
			*o.Slack = -1
		}
		if m, err := timer.NewManual(dawn, &o); m != nil || err == nil {
			t.Errorf("NewManual(%+v) = %v, %v", o, m, err)
		}
	}
	m := newManual(t, nil)
	for name, f := range map[string]func(){
		"timer: Advance called with a negative duration": func() { m.Advance(-1) },
		"timer: Run called with a negative duration":     func() { m.Run(-1) },
	} {
		func() {
			defer func() {
				if got := recover(); got != name {
					t.Errorf("panic %v, want %q", got, name)
				}
			}()
			f()
		}()
	}
}

// Close wakes sleepers, and nothing fires any more.
func TestManualClose(t *testing.T) {
	m := newManual(t, nil)
	slept := make(chan struct{})
	go func() { m.Sleep(time.Hour); close(slept) }()
	m.AfterFunc(time.Second, func() { t.Error("fired after Close") })
	if err := m.AwaitPending(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	suite.Await(t, "the sleeper woke", slept)
	m.Advance(time.Minute)
	if at, ok := m.Next(); ok || m.Now().Sub(dawn) != time.Minute {
		t.Errorf("after Close: Next = %v, Now = %v", at, m.Now())
	}
	wantClosed(t, "Sleep", func() { m.Sleep(1) })
	if m.Close() == nil {
		t.Error("a second Close gave no error")
	}
}

// In a bubble a Manual is on its own time, and synctest.Wait sees its
// goroutines wait.
func TestManualBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManual(t, nil)
		loops := 0
		var stop atomic.Bool
		go func() {
			for !stop.Load() {
				m.Sleep(time.Minute)
				loops++ // which the test sees after the next Sleep
			}
		}()
		tk := m.NewTicker(time.Second)
		ctx, cancel := m.WithTimeout(t.Context(), 90*time.Second)
		defer cancel()
		q := timer.NewQueue(m.Service, func([]timer.Expired[int]) {})
		q.Add(time.Second, 1)
		for k := range 180 {
			synctest.Wait()
			if loops != k/60 || (ctx.Err() != nil) != (k >= 90) {
				t.Fatalf("after %d seconds: %d loops, context %v", k, loops, ctx.Err())
			}
			m.Advance(time.Second)
			if got := received(tk.C); got != time.Duration(k+1)*time.Second {
				t.Fatalf("after %d seconds: tick of %v", k+1, got)
			}
		}
		start := time.Now()
		if !m.Run(time.Hour) || !m.Settle() || loops != 63 || !time.Now().Equal(start) {
			t.Errorf("%d loops, the bubble's time went on by %v", loops, time.Since(start))
		}
		stop.Store(true)
		if err := m.Close(); err != nil { // which wakes the sleeper
			t.Error(err)
		}
	})
	// Nothing of the bubble is used outside.
	for range 10 * runtime.GOMAXPROCS(0) {
		timer.Sleep(1)
		runtime.Gosched()
	}
}

// Callbacks run on the goroutine that advances the clock, which keeps its labels.
func TestManualLabels(t *testing.T) {
	const label = "TestManualLabels-label"
	m := newManual(t, nil)
	pprof.Do(t.Context(), pprof.Labels("test", label), func(context.Context) {
		m.AfterFunc(time.Second, func() {
			if labelled(label) == "" {
				t.Error("the callback runs without the labels of its caller")
			}
		})
		m.Advance(time.Second)
		if labelled(label) == "" {
			t.Error("Advance has taken its caller's labels away")
		}
	})
}

// Nothing of a Manual is left running, closed or not.
func TestManualLeavesNothing(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 100 {
		m := newManual(t, nil)
		m.After(time.Second)
		m.NewTicker(time.Second)
		m.Advance(time.Minute)
	}
	for k := 0; runtime.NumGoroutine() > before; k++ {
		if k > 10_000 {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
		time.Sleep(time.Millisecond)
	}
}

// TestManualContextBelow: a parent's deadline on the real clock, which is earlier as a
// time but may come later, does not stand for one on virtual time.
func TestManualContextBelow(t *testing.T) {
	m := newManual(t, nil)
	for name, with := range map[string]func(context.Context, time.Time) (context.Context, context.CancelFunc){
		"timer": timer.WithDeadline, "context": context.WithDeadline,
	} {
		parent, cancelParent := with(t.Context(), m.Now().Add(time.Hour))
		child, cancel := m.WithTimeout(parent, 2*time.Hour)
		m.Advance(2 * time.Hour)
		if err := child.Err(); err != context.DeadlineExceeded {
			t.Errorf("below %s: %v, want it to be done", name, err)
		}
		cancel()
		cancelParent()
	}
}
