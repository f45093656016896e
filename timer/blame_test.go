package timer_test

import (
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/detent-go/detent/internal/suite"
	"github.com/detent-go/detent/timer"
)

// checkBlame fails the test unless the parts add up to the lateness, and each
// timer counts where it should.
func checkBlame(t *testing.T, st timer.Stats) {
	t.Helper()
	b := st.Blame
	sum := b.Slack.Sum() + b.Kernel.Sum() + b.Scheduler.Sum() + b.Wakeup.Sum() + b.Throttled.Sum() + b.Queue.Sum()
	if sum != st.Lateness.Sum() {
		t.Errorf("the parts add up to %v, Lateness to %v", sum, st.Lateness.Sum())
	}
	n := st.Lateness.Count()
	for name, h := range map[string]timer.Histogram{"Slack": b.Slack, "Throttled": b.Throttled, "Queue": b.Queue} {
		if h.Count() != n {
			t.Errorf("%s counts %d timers of %d", name, h.Count(), n)
		}
	}
	if k, s, w := b.Kernel.Count(), b.Scheduler.Count(), b.Wakeup.Count(); k != s || k+w != n {
		t.Errorf("Kernel counts %d timers, Scheduler %d and Wakeup %d, of %d", k, s, w, n)
	}
	for k, h := range []timer.Histogram{b.Slack, b.Kernel, b.Scheduler, b.Wakeup, b.Throttled, b.Queue} {
		name := [...]string{"slack", "kernel", "scheduler", "wakeup", "throttled", "queue"}[k]
		t.Logf("%-9s p50 %9v p99 %9v max %9v sum %v", name, h.Quantile(0.5), h.Quantile(0.99), h.Max(), h.Sum())
	}
}

// TestBlame starts all kinds of timers while others are at work, with callbacks
// that block or take long: their lateness is accounted for.
func TestBlame(t *testing.T) {
	slack := 10 * time.Millisecond
	for name, o := range map[string]timer.Options{
		"default": {},
		"inline":  {Callbacks: timer.Inline},
		"slack":   {Slack: &slack},

		// Which nobody sets meanwhile.
		"boottime":       {Clock: timer.Boottime},
		"realtime":       {Clock: timer.Realtime},
		"boottime, told": {Clock: timer.Boottime, Blame: true},
		"realtime, told": {Clock: timer.Realtime, Blame: true},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := timer.New(&o); errors.Is(err, errors.ErrUnsupported) {
				t.Skip(err)
			}
			s := mustNew(t, &o)
			if n := s.Stats().Blame.Queue.Count(); n != 0 {
				t.Errorf("%d timers are blamed before the first", n)
			}
			tick := s.NewTicker(300 * time.Microsecond)
			exact := s.WithSlack(0)
			var wg sync.WaitGroup
			for k := range suite.Scale(2000) {
				wg.Add(1)
				d := time.Duration(k%40) * 251 * time.Microsecond
				switch k % 8 {
				case 0:
					go func() { exact.Sleep(d); wg.Done() }()
				case 1:
					go func() { <-s.After(d); wg.Done() }()
				case 2:
					exact.AfterFunc(d, wg.Done)
				case 3:
					s.AfterFunc(d, func() { runtime.Gosched(); wg.Done() })
				case 4:
					s.AfterFunc(d-time.Millisecond, wg.Done)
				case 5:
					x := s.AfterFunc(time.Hour, wg.Done)
					x.Reset(2 * d)
				case 6:
					x := s.AfterFunc(d, wg.Done)
					if !x.Reset(d + 500*time.Microsecond) {
						wg.Add(1)
					}
				default:
					time.Sleep(d / 100)
					if k%64 == 7 {
						s.AfterFunc(d, func() { time.Sleep(2 * time.Millisecond); wg.Done() })
					} else {
						wg.Done()
					}
				}
			}
			wg.Wait()
			tick.Stop()
			checkBlame(t, s.Stats())
		})
	}
}

// TestBlameSlack: what a timer is late for its slack is blamed on that, up to the
// slack.
func TestBlameSlack(t *testing.T) {
	slack := 20 * time.Millisecond
	s := mustNew(t, &timer.Options{Slack: &slack})
	var wg sync.WaitGroup
	for k := range 200 {
		wg.Add(1)
		s.AfterFunc(time.Duration(k)*123*time.Microsecond, wg.Done)
	}
	wg.Wait()
	st := s.Stats()
	checkBlame(t, st)
	if got := st.Blame.Slack.Max(); got == 0 || got > slack {
		t.Errorf("up to %v of slack with a slack of %v", got, slack)
	}
}

// TestBlameQueue: what a timer waits for the callback before it is the queue's
// part.
func TestBlameQueue(t *testing.T) {
	const long = 50 * time.Millisecond
	s := mustNew(t, &timer.Options{Shards: 1, Callbacks: timer.Inline}).WithSlack(0)
	done := make(chan time.Time, 1)
	s.AfterFunc(2*time.Millisecond, func() { time.Sleep(long) })
	s.AfterFunc(3*time.Millisecond, func() { done <- time.Now() })
	suite.Await(t, "the second callback", done)
	st := s.Stats()
	checkBlame(t, st)
	// The first callback began after 2 ms at the earliest, and the second timer was
	// due at 3: it has waited for the rest of it.
	if got := st.Blame.Queue.Max(); got < long-time.Millisecond {
		t.Errorf("a timer behind a callback of %v waited %v in the queue", long, got)
	}
}
