package clock

import (
	"errors"
	"flag"
	"runtime"
	"testing"
	"time"

	"github.com/detent-go/detent/internal/tsc"
)

var boundFor = flag.Duration("bound", 500*time.Millisecond, "how long TestBound runs")

// trusting returns a TSC that is in use, or skips the test where none can be.
func trusting(t testing.TB) *TSC {
	t.Helper()
	c := new(TSC)
	awaitTrust(t, &c.engine)
	return c
}

// awaitTrust reads until an engine uses the counter, and skips the test where it
// cannot.
func awaitTrust(t testing.TB, e *engine) {
	t.Helper()
	if !tsc.Supported {
		t.Skip("no counter in this build")
	}
	for range 20_000 {
		h := e.health()
		if h.Trusted {
			return
		}
		// The comparison of the CPUs takes as long as they are busy.
		if !errors.Is(h.Err, ErrCalibrating) && !errors.Is(h.Err, tsc.ErrBusy) {
			t.Skip("the counter is not trusted: ", h.Err)
		}
		time.Sleep(time.Millisecond)
	}
	t.Skip("too busy a machine: ", e.health().Err)
}

// awaitReturn reads until an engine that has lost trust uses the counter again.
func awaitReturn(t testing.TB, e *engine) {
	t.Helper()
	for range 20_000 {
		if e.health().Trusted {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Errorf("no return to the counter: %+v", e.health())
}

// burst reads until several lines have come and gone.
func burst(t *testing.T, c *TSC) {
	for until := Mono.Nanos() + int64(3*lineTime); Mono.Nanos() < until; {
		c.Ordered()
	}
}

// checkBound compares readings with the kernel's clock for some time: none is
// further off than it states.
func checkBound(t *testing.T, c *TSC, d time.Duration) {
	t.Helper()
	var worst, widest time.Duration
	n := 0
	began := time.Now()
	for last := int64(0); time.Since(began) < d; n++ {
		before := Mono.Nanos()
		ns, bound := c.Bounded()
		after := Mono.Nanos()
		off := time.Duration(max(before-ns, ns-after, 0)) // at least
		if off > bound {
			t.Fatalf("reading %d: %d stated to be within %v of the clock, which was at %d before and %d after", n, ns, bound, before, after)
		}
		if ns < last {
			t.Fatalf("reading %d: %d after %d", n, ns, last)
		}
		last = ns
		worst, widest = max(worst, off), max(widest, bound)
		if n%100_000 == 0 {
			time.Sleep(3 * time.Millisecond) // begin anew after a pause
		}
	}
	t.Logf("%d readings: off by %v at least, largest bound %v, %+v", n, worst, widest, c.Health())
}

// Run it with -bound 5m after a change to the tracker.
func TestBound(t *testing.T) {
	c := trusting(t)
	checkBound(t, c, *boundFor)
	if h := c.Health(); h.Excess != 0 && h.Jumps == 0 {
		t.Errorf("%d lines were further off than they stated", h.Excess)
	}
}

// The zero TSC is the kernel's clock until the counter has been measured, without
// making anybody wait, and the change is not seen.
func TestTSCFromTheStart(t *testing.T) {
	c := new(TSC)
	before := Mono.Nanos()
	ns, bound := c.Bounded()
	after := Mono.Nanos()
	if ns < before || ns > after || bound != 0 {
		t.Errorf("the first reading is %d with bound %v, between %d and %d", ns, bound, before, after)
	}
	if h := c.Health(); h.Trusted || h.Err == nil || h.Lines != 0 {
		t.Errorf("at the start: %+v", h)
	}
	checkBound(t, c, 60*time.Millisecond)
	checkOrder(t, 50_000, new(TSC).Ordered)
}

func TestTSCInOrder(t *testing.T) {
	c := trusting(t)
	checkOrder(t, 500_000, c.Ordered)
	checkOrder(t, 100_000, func() int64 { ns, _ := c.Bounded(); return ns })
}

// Intervals by unordered readings of one thread are those of the clock, give or
// take what the CPU may do earlier or later.
func TestUnordered(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const reorder = 50_000
	c := new(TSC)
	if tsc.Supported {
		c = trusting(t)
	}
	for i := range 300 {
		m0 := Mono.Nanos()
		first := c.Unordered()
		m1 := Mono.Nanos()
		for spin := range i * 1000 {
			_ = spin
		}
		if i%100 == 0 {
			time.Sleep(time.Millisecond)
		}
		_, bound := c.Bounded()
		slack := reorder + 2*int64(bound) + 2000
		m2 := Mono.Nanos()
		second := c.Unordered()
		m3 := Mono.Nanos()
		if d := second - first; d < m2-m1-slack || d > m3-m0+slack {
			t.Fatalf("%d ns passed, by the clock between %d and %d", d, m2-m1, m3-m0)
		}
	}
}

// A TSC that is read rarely is the kernel's clock, without losing trust, and one
// that is read often again is not. The changes are not seen.
func TestIdle(t *testing.T) {
	c := trusting(t)
	for range 3 {
		for range 4 {
			time.Sleep(time.Millisecond)
			before := Mono.Nanos()
			ns := c.Ordered()
			if bound := Mono.Nanos() - before + int64(time.Microsecond); ns < before-bound || ns > before+bound {
				t.Errorf("%d, at %d", ns, before)
			}
		}
		k := c.engine.kernel.Load()
		if h := c.Health(); k == nil || k.phase != idle || !h.Trusted || h.Err != nil || h.Fallbacks != 0 {
			t.Errorf("after rare readings: %+v, %+v", k, h)
		}
		last := c.Ordered()
		for n := 0; c.engine.kernel.Load() != nil; n++ {
			ns := c.Ordered()
			if ns < last {
				t.Fatalf("%d after %d", ns, last)
			}
			if last = ns; n > 100_000_000 {
				t.Fatal("still idle")
			}
		}
	}
	checkBound(t, c, 20*time.Millisecond)
	checkOrder(t, 100_000, func() int64 {
		if Mono.Nanos()&0xfffff < 300 {
			time.Sleep(2 * time.Millisecond)
		}
		return c.Ordered()
	})
}

// Use leaves no goroutine behind.
func TestNoGoroutineRemains(t *testing.T) {
	trusting(t)
	for range 1000 {
		if runtime.NumGoroutine() <= 2 {
			return
		}
		time.Sleep(time.Millisecond)
	}
	stacks := make([]byte, 1<<16)
	t.Errorf("%s", stacks[:runtime.Stack(stacks, true)])
}

func TestHealthWithoutCounter(t *testing.T) {
	if tsc.Supported {
		t.Skip("there is one")
	}
	if h := new(TSC).Health(); h.Trusted || !errors.Is(h.Err, errors.ErrUnsupported) {
		t.Errorf("%+v", h)
	}
	checkBound(t, new(TSC), 5*time.Millisecond)
}
