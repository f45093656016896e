package clock

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/detent-go/detent/internal/tsc"
)

// compareNow compares a time with the kernel's clock and with time.Now. The
// bounds are those of the moment: of the line and of what is known of the two
// constants. It returns how far off the monotonic part was at least.
func compareNow(t *testing.T, c *nowClock) time.Duration {
	t.Helper()
	known := func() int64 {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.real.high - c.real.low
	}
	for range 100 {
		seq, width := c.engine.seq.Load(), known()
		wall0, t0 := Real.Nanos(), time.Now()
		now := c.now()
		t1, wall1 := time.Now(), Real.Nanos()
		_, bound := c.engine.read()
		if seq != c.engine.seq.Load() {
			continue // another line, with another bound
		}
		off := int64(max(t0.Sub(now), now.Sub(t1), 0))
		if off > bound+c.exact {
			t.Errorf("the monotonic part is %d ns off, stated %d", off, bound+c.exact)
		}
		bound += max(width, known())
		if ns := now.UnixNano(); wall0 <= wall1 && (ns < wall0-bound || ns > wall1+bound) {
			t.Errorf("the wall part is %d, not within %d of %d to %d", ns, bound, wall0, wall1)
		}
		return time.Duration(off)
	}
	t.Log("the machine was too busy for a comparison")
	return 0
}

func TestNow(t *testing.T) {
	for name, lost := range map[string]error{"counter": nil, "kernel's clock": errBusy} {
		t.Run(name, func(t *testing.T) {
			if !tsc.Supported {
				t.Skip("Now is time.Now")
			}
			c := new(nowClock)
			if lost != nil {
				c.engine.trust = func() error { return lost }
			}
			c.now()
			if lost == nil {
				awaitTrust(t, &c.engine)
			}
			var worst time.Duration
			for range 20_000 {
				worst = max(worst, compareNow(t, c))
				if t.Failed() {
					break
				}
			}
			t.Logf("off by up to %v at least; monotonic time known to %d ns, wall clock to %d", worst, c.exact, c.real.high-c.real.low)
		})
	}
}

// A time of Now is in every way like one of time.Now.
func TestNowIsLikeTimeNow(t *testing.T) {
	for range 3 { // before and after the counter is in use
		now, want := Now(), time.Now()
		if now.Location() != want.Location() || now.Location() != time.Local {
			t.Errorf("location %v", now.Location())
		}
		if now == now.Round(0) {
			t.Error("no monotonic reading")
		}
		if d := want.Sub(now); d < -time.Millisecond || d > time.Minute {
			t.Errorf("Sub: %v", d)
		}
		if d := want.Round(0).Sub(now.Round(0)); d < -time.Millisecond || d > time.Minute {
			t.Errorf("Sub of the wall parts: %v", d)
		}
		if now.Year() != want.Year() && want.YearDay() != 1 {
			t.Errorf("year %d", now.Year())
		}
		if later := now.Add(time.Hour); later.Sub(now) != time.Hour || !later.After(now) {
			t.Errorf("%v, an hour after %v", later, now)
		}
		text, err := now.MarshalText()
		var back time.Time
		if err != nil || back.UnmarshalText(text) != nil || !back.Equal(now) {
			t.Errorf("%s is read back as %v", text, back)
		}
		time.Sleep(30 * time.Millisecond)
	}
}

func TestNowInOrder(t *testing.T) {
	from := time.Now()
	checkOrder(t, 200_000, func() int64 { return int64(Now().Sub(from)) })
}

// A line ends with the second, so that nanoseconds may be added to the wall part
// without a carry.
func TestNowAcrossSeconds(t *testing.T) {
	if !tsc.Supported {
		t.Skip("Now is time.Now")
	}
	c := new(nowClock)
	c.now()
	awaitTrust(t, &c.engine)
	e := &c.engine
	to := time.Now().Truncate(time.Second).Add(time.Second)
	time.Sleep(time.Until(to) - 2*time.Millisecond)
	last := c.now()
	for time.Since(to) < time.Millisecond {
		now := c.now()
		if now.Sub(last) < 0 || now.Round(0).Sub(last.Round(0)) < -time.Microsecond || now.Round(0).Sub(last.Round(0)) > now.Sub(last)+time.Microsecond {
			t.Fatalf("%v after %v", now, last)
		}
		last = now
		e.mu.Lock()
		const nanoseconds = 1<<30 - 1
		if e.line.Span != 0 && int64(e.wall.Load()&nanoseconds)+tsc.Scale(e.line.Span-1, e.line.Mult) >= 1e9 {
			t.Errorf("a line %+v goes on beyond its second", e.line)
		}
		e.mu.Unlock()
	}
}

// Nothing that happens in a bubble is left behind in the clock.
func TestNowInBubble(t *testing.T) {
	c := new(nowClock)
	synctest.Test(t, func(t *testing.T) {
		if tsc.Supported && c.now() != time.Now() {
			t.Error("a clock that has not been used yet makes up times in a bubble")
		}
		time.Sleep(time.Hour)
		Now()
	})
	if d := time.Since(Now()); d < -time.Millisecond || d > time.Minute {
		t.Errorf("off by %v after a bubble", d)
	}
	if tsc.Supported {
		c.now()
		compareNow(t, c)
		synctest.Test(t, func(t *testing.T) {
			var group sync.WaitGroup
			group.Go(func() { c.now() })
			group.Wait()
		})
		compareNow(t, c)
	}
}

// What the layout of times cannot hold, and a layout that is not known, are left
// to package time.
func TestNowWithoutParts(t *testing.T) {
	if !tsc.Supported {
		t.Skip("Now is time.Now")
	}
	c := new(nowClock)
	c.now()
	awaitTrust(t, &c.engine)
	const beyond = int64(200 * 365 * 24 * time.Hour)
	if _, _, _, err := c.parts(beyond); err != errYear {
		t.Errorf("parts of a year beyond 2157: %v", err)
	}
	e := &c.engine
	e.mu.Lock()
	e.parts = func(base int64) (uint64, int64, int64, error) { return c.parts(base + beyond) }
	e.mu.Unlock()
	time.Sleep(time.Millisecond)
	if d := time.Until(c.now()).Abs(); d > time.Hour {
		t.Errorf("off by %v", d)
	}
	if h := e.health(); h.Trusted || h.Err != errYear {
		t.Errorf("%+v", h)
	}
	c.look.Store(everything.high)
	c.unix.Store(beyond)
	if d := time.Until(c.now()).Abs(); d > time.Hour {
		t.Errorf("off by %v in the year %d", d, c.now().Year())
	}

	c = new(nowClock)
	c.state.Store(never)
	if d := time.Until(c.now()).Abs(); d > time.Hour {
		t.Errorf("off by %v", d)
	}
	if c.engine.kernel.Load() != nil {
		t.Error("the engine has been used")
	}
}
