package suite

import (
	"math"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"
	"time"
)

// ticks receives n ticks from tk, of which the k-th must not come before
// start+k*period, and returns their times. start is a reading from before the
// ticker was started or reset.
func ticks(t testing.TB, tk Ticker, start time.Time, period time.Duration, n int) []time.Time {
	t.Helper()
	var times []time.Time
	for k := 1; k <= n; k++ {
		v := Await(t, "a tick came", tk.C())
		if early := time.Duration(k)*period - v.Sub(start); early > 0 {
			t.Errorf("period %v: tick %d early by %v", period, k, early)
		}
		if now := time.Now(); v.After(now) {
			t.Errorf("period %v: tick %d lies %v in the future", period, k, v.Sub(now))
		}
		times = append(times, v)
	}
	return times
}

// A ticker keeps its schedule: a late tick does not push the following ones
// back. So some interval between two ticks is shorter than the period, sooner
// or later; never, if each tick were planned from the one before.
func testTickerSchedule(t *testing.T, e Engine) {
	periods := []time.Duration{
		time.Millisecond, 2 * tick, 2*tick + 1, 3700 * time.Microsecond, 10 * time.Millisecond,
	}
	together(t, "the tickers ticked", len(periods), func(t testing.TB, i int) {
		// Where ticks of several periods come together, none is shorter.
		period := periods[i] + 2*e.Slack
		const rounds = 100
		for round := 1; ; round++ {
			start := time.Now()
			tk := e.NewTicker(period)
			times := ticks(t, tk, start, period, 20)
			tk.Stop()
			for i := 1; i < len(times); i++ {
				if times[i].Sub(times[i-1]) < period {
					return
				}
			}
			if round == rounds {
				t.Errorf("period %v: no interval of %d is shorter, so the schedule drifts", period, 19*rounds)
				return
			}
		}
	})
}

// Ticks for which nobody is ready are dropped, but for one.
func testTickerDrops(t *testing.T, e Engine) {
	const period = 2 * time.Millisecond
	start := time.Now()
	tk := e.NewTicker(period)
	defer tk.Stop()
	got := 0
	for range 4 {
		time.Sleep(20 * period)
		begin, n := time.Now(), 0
		for drained := false; !drained; {
			select {
			case v := <-tk.C():
				n++
				if v.Sub(start) < time.Duration(got+n)*period {
					t.Errorf("tick %d at +%v, period %v", got+n, v.Sub(start), period)
				}
			default:
				drained = true
			}
		}
		// One that waited, those that came in the meantime, and a border.
		if most := 2 + int(time.Since(begin)/period); n > most {
			t.Errorf("%d ticks at once after 20 periods, want at most %d", n, most)
		}
		got += n
	}
	if got == 0 {
		Await(t, "a tick came", tk.C())
	}
}

func testTickerStop(t *testing.T, e Engine) {
	for range Scale(20) {
		const period = 500 * time.Microsecond
		tk := e.NewTicker(period)
		time.Sleep(time.Duration(rand.IntN(4)) * period)
		tk.Stop()
		empty(t, "stopped ticker", tk.C())
		tk.Stop()
		time.Sleep(3 * period)
		empty(t, "ticker stopped twice", tk.C())
		start := time.Now()
		tk.Reset(period)
		ticks(t, tk, start, period, 3)

		// With a receiver waiting: no tick is from after the Stop.
		quit, last := make(chan struct{}), make(chan time.Time, 1)
		go func() {
			var v time.Time
			for {
				select {
				case v = <-tk.C():
				case <-quit:
					last <- v
					return
				}
			}
		}()
		time.Sleep(2 * period)
		tk.Stop()
		stopped := time.Now()
		time.Sleep(3 * period)
		close(quit)
		if v := <-last; v.After(stopped) {
			t.Errorf("tick %v after Stop", v.Sub(stopped))
		}
	}
}

func testTickerReset(t *testing.T, e Engine) {
	tos := []time.Duration{1, 300 * time.Microsecond, time.Millisecond, 7 * time.Millisecond, 64 * tick}
	froms := []time.Duration{1, time.Millisecond, time.Hour}
	together(t, "the tickers ticked", len(tos)*len(froms), func(t testing.TB, i int) {
		to, from := tos[i%len(tos)], froms[i/len(tos)]
		tk := e.NewTicker(from)
		if from < time.Hour {
			Await(t, "a tick came", tk.C())
			time.Sleep(2 * time.Millisecond)
		}
		start := time.Now()
		tk.Reset(to)
		// Nothing is left from before: the first is not early.
		ticks(t, tk, start, to, 4)
		tk.Reset(time.Hour)
		empty(t, "ticker reset to an hour", tk.C())
		// Pushed back over and over before it is due.
		for begin := time.Now(); time.Since(begin) < 3*time.Millisecond; {
			start = time.Now()
			tk.Reset(to)
			runtime.Gosched()
		}
		n := 2
		if _, inexact := e.Lacks[ExactResults]; inexact {
			n = 1 // Package time's second tick was once seen right after the first.
		}
		ticks(t, tk, start, to, n)
		tk.Stop()
		start = time.Now()
		tk.Reset(to)
		ticks(t, tk, start, to, 2)
		tk.Stop()
		empty(t, "stopped ticker", tk.C())
	})
}

func testTickerHuge(t *testing.T, e Engine) {
	for _, d := range huge {
		tk := e.NewTicker(d)
		time.Sleep(time.Millisecond)
		empty(t, "ticker with a huge period", tk.C())
		start := time.Now()
		tk.Reset(time.Millisecond)
		ticks(t, tk, start, time.Millisecond, 3)
		tk.Reset(d)
		time.Sleep(2 * time.Millisecond)
		empty(t, "ticker reset to a huge period", tk.C())
		tk.Stop()
	}
	// The shortest there is: it must leave room for others.
	tk := e.NewTicker(1)
	defer tk.Stop()
	for range 200 {
		Await(t, "a tick of 1ns came", tk.C())
		Await(t, "a timer fired beside a ticker of 1ns", e.After(time.Microsecond))
	}
	tk.Reset(math.MaxInt64)
	empty(t, "ticker reset from 1ns", tk.C())
}

// Many goroutines reset, stop and receive from one ticker; when they are done
// it is in one of its two states, and obeys.
func testTickerConcurrent(t *testing.T, e Engine) {
	for range Scale(10) {
		tk := e.NewTicker(100 * time.Microsecond)
		var wg sync.WaitGroup
		for range 4 * runtime.GOMAXPROCS(0) {
			wg.Go(func() {
				for range 200 {
					switch rand.IntN(4) {
					case 0:
						tk.Stop()
					case 1, 2:
						tk.Reset(time.Duration(1 + rand.IntN(200_000)))
					case 3:
						select {
						case <-tk.C():
						default:
						}
					}
					runtime.Gosched()
				}
			})
		}
		wait(t, "all goroutines ended", &wg)
		tk.Reset(100 * time.Microsecond)
		time.Sleep(time.Millisecond)
		tk.Stop()
		empty(t, "stopped", tk.C())
		time.Sleep(time.Millisecond)
		empty(t, "stopped", tk.C())
		start := time.Now()
		tk.Reset(time.Millisecond)
		ticks(t, tk, start, time.Millisecond, 2)
		tk.Stop()
	}
}

// Tickers that were dropped without Stop are collected, and no longer cost.
func testTickerCollected(t *testing.T, e Engine) {
	e.need(t, Counted)
	e.need(t, Dropped)
	base := uint64(math.MaxUint64)
	for range 5 {
		runtime.GC()
		time.Sleep(5 * time.Millisecond)
		base = min(base, e.Pending())
	}
	percent := debug.SetGCPercent(-1) // lest they are collected before they are counted
	dropTickers(e, 500, time.Millisecond)
	dropTickers(e, 500, time.Hour)
	debug.SetGCPercent(percent)
	if n := e.Pending(); n < base+100 {
		t.Fatalf("%d pending after 1000 tickers were started, %d before", n, base)
	}
	begin, cycles := time.Now(), 0
	defer func() {
		t.Logf("%d pending after %d collections in %v, %d before", e.Pending(), cycles, time.Since(begin), base)
	}()
	Eventually(t, "dropped tickers are collected", func() bool {
		runtime.GC()
		cycles++
		return e.Pending() <= base
	})
}

//go:noinline
func dropTickers(e Engine, n int, period time.Duration) {
	for i := range n {
		tk := e.NewTicker(period)
		// The channels of most that tick are full.
		if i%5 == 0 {
			select {
			case <-tk.C():
			case <-time.After(2 * time.Millisecond):
			}
		}
	}
}
