package timer_test

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/detent-go/detent/internal/suite"
	"github.com/detent-go/detent/timer"
)

// The suite's Conserve tests put each engine by itself under stress. These are
// about what several of them share.

// TestStressStats lets many goroutines do anything through several views of one
// service and compares its counters with the test's own, exactly.
func TestStressStats(t *testing.T) {
	s := mustNew(t, nil)
	views := []*timer.Service{s, s.WithSlack(0), s.WithSlack(4 * time.Millisecond), s.WithSlack(timer.AutoSlack)}
	var started, stopped, reset, rearmed, fired, channels atomic.Int64
	hit := func() { fired.Add(1) }

	var wg sync.WaitGroup
	for g := range 4 * runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), uint64(g)))
			var mine []*timer.Timer
			for i := range suite.Scale(10_000) {
				d := time.Duration(r.IntN(3_000_000))
				view := views[r.IntN(len(views))]
				switch op := r.IntN(10); {
				case op < 4 || len(mine) == 0:
					started.Add(1)
					mine = append(mine, view.AfterFunc(d, hit))
				case op < 6:
					if mine[r.IntN(len(mine))].Stop() {
						stopped.Add(1)
					}
				case op < 9:
					reset.Add(1)
					if !mine[r.IntN(len(mine))].Reset(d) {
						rearmed.Add(1)
					}
				default:
					// A channel that nobody reads, stopped at once or later.
					started.Add(1)
					channels.Add(1)
					if tm := view.NewTimer(time.Hour); tm.Stop() {
						stopped.Add(1)
					}
				}
				if i%200 == 0 {
					time.Sleep(time.Duration(r.IntN(2000)) * time.Microsecond)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	suite.Await(t, "the operations ended", done)

	want := started.Load() + rearmed.Load() - stopped.Load()
	suite.Eventually(t, "everything fired that was not stopped", func() bool { return fired.Load() >= want })
	time.Sleep(20 * time.Millisecond)
	if got := fired.Load(); got != want {
		t.Errorf("started %d + rearmed %d - stopped %d = %d, fired %d",
			started.Load(), rearmed.Load(), stopped.Load(), want, got)
	}
	for _, view := range views {
		st := view.Stats()
		for _, c := range []struct {
			name string
			got  uint64
			want int64
		}{
			// A Reset of a timer that has ended counts as a start.
			{"Started+Reset", st.Started + st.Reset, started.Load() + reset.Load()},
			{"Stopped", st.Stopped, stopped.Load()},
			{"Fired", st.Fired, want},
			{"Pending", st.Pending, 0},
			{"Lateness.Count", st.Lateness.Count(), want},
		} {
			if c.got != uint64(c.want) {
				t.Errorf("Stats.%s = %d, want %d", c.name, c.got, c.want)
			}
		}
		if st.Wakeups == 0 && want > 0 {
			t.Error("Stats.Wakeups = 0, yet timers fired")
		}
	}
	t.Logf("%d started, %d reset, %d stopped, %d fired", started.Load(), reset.Load(), stopped.Load(), want)
}

// TestStressProcs changes GOMAXPROCS under running timers, so that shards lose
// and gain their P, and uses timers from goroutines locked to their threads.
func TestStressProcs(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	s := mustNew(t, nil)
	n := suite.Scale(4000)
	var early, fired atomic.Int64
	var counts = make([]atomic.Int32, 4*n)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			if g == 0 {
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
			}
			for i := range n {
				d, start := time.Duration(rand.IntN(5_000_000)), time.Now()
				s.AfterFunc(d, func() {
					if time.Since(start) < d {
						early.Add(1)
					}
					counts[g*n+i].Add(1)
					fired.Add(1)
				})
				if i%100 == 0 {
					time.Sleep(500 * time.Microsecond)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for procs := 1; ; procs = procs%6 + 1 {
		runtime.GOMAXPROCS(procs)
		select {
		case <-done:
		case <-time.After(3 * time.Millisecond):
			continue
		}
		break
	}
	suite.Eventually(t, "every timer fired", func() bool { return fired.Load() >= int64(len(counts)) })
	time.Sleep(10 * time.Millisecond)
	for i := range counts {
		if c := counts[i].Load(); c != 1 {
			t.Fatalf("timer %d fired %d times", i, c)
		}
	}
	if early.Load() != 0 {
		t.Errorf("%d of %d early", early.Load(), len(counts))
	}
}

// TestStressServices moves work through several services at once: a function of
// one starts, stops and resets timers of the next.
func TestStressServices(t *testing.T) {
	exact := time.Duration(0)
	services := []*timer.Service{
		timer.Default(), mustNew(t, nil), mustNew(t, &timer.Options{Slack: &exact}),
		mustNew(t, &timer.Options{Shards: 1, Callbacks: timer.Inline}),
	}
	var wg sync.WaitGroup
	for range suite.Scale(200) {
		wg.Add(1)
		left := 50
		var hop func()
		hop = func() {
			s := services[left%len(services)]
			if left--; left < 0 {
				wg.Done()
				return
			}
			d := time.Duration(left%4) * 100 * time.Microsecond
			guard := s.AfterFunc(time.Hour, func() { t.Error("an hour passed") })
			next := s.AfterFunc(time.Hour, hop)
			if !guard.Stop() {
				t.Error("Stop of a pending timer = false")
			}
			if !next.Reset(d) {
				t.Error("Reset of a pending timer = false")
			}
		}
		hop()
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	suite.Await(t, "every chain ended", done)
}
