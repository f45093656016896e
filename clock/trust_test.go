package clock

import (
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/detent-go/detent/internal/tsc"
)

// When the kernel gives the counter up the TSC does so too, at the first reading
// a quarter of a second later or sooner; it tells, does not step back, and comes
// back when the kernel does.
func TestLossOfTrust(t *testing.T) {
	c := new(TSC)
	lost := errors.New("lost")
	var gone atomic.Bool
	c.engine.trust = func() error {
		if gone.Load() {
			return lost
		}
		return checkClocksource()
	}
	awaitTrust(t, &c.engine)

	var stop atomic.Bool
	var group sync.WaitGroup
	group.Go(func() {
		for !stop.Load() {
			checkOrder(t, 10_000, c.Ordered)
		}
	})
	defer group.Wait()
	defer stop.Store(true)

	for round := range uint64(2) {
		gone.Store(true)
		time.Sleep(watch)
		c.Ordered()
		time.Sleep(time.Millisecond) // the line in force, if it was young
		before := Mono.Nanos()
		ns, bound := c.Bounded()
		after := Mono.Nanos()
		h := c.Health()
		if h.Trusted || !errors.Is(h.Err, lost) || h.Fallbacks != round+1 {
			t.Errorf("after the loss: %+v", h)
		}
		if ns < before || ns > after || bound != 0 {
			t.Errorf("after the loss: %d with bound %v, between %d and %d", ns, bound, before, after)
		}
		gone.Store(false)
		awaitReturn(t, &c.engine)
	}
	if h := c.Health(); h.Lines == 0 || h.Fallbacks != 2 {
		t.Errorf("at the end: %+v", h)
	}
}

// Health finds a loss by itself, and a line in force is used to its end, because
// others may have read it already.
func TestHealthFindsLoss(t *testing.T) {
	c := new(TSC)
	lost := errors.New("lost")
	var gone atomic.Bool
	c.engine.trust = func() error {
		if gone.Load() {
			return lost
		}
		return checkClocksource()
	}
	awaitTrust(t, &c.engine)
	gone.Store(true)
	time.Sleep(watch)
	last := c.Ordered()
	if h := c.Health(); h.Trusted || !errors.Is(h.Err, lost) {
		t.Errorf("%+v", h)
	}
	for range 100_000 {
		ns := c.Ordered()
		if ns < last {
			t.Fatalf("%d after %d", ns, last)
		}
		last = ns
	}
}

// Trust can be lost while the clock is read rarely.
func TestLossWhileIdle(t *testing.T) {
	lost := errors.New("lost")
	for name, find := range map[string]func(*TSC){
		"Health":   func(c *TSC) { c.Health() },
		"readings": func(c *TSC) { burst(t, c) },
	} {
		c := new(TSC)
		var gone atomic.Bool
		c.engine.trust = func() error {
			if gone.Load() {
				return lost
			}
			return checkClocksource()
		}
		awaitTrust(t, &c.engine)
		for k := c.engine.kernel.Load(); k == nil || k.phase != idle; k = c.engine.kernel.Load() {
			time.Sleep(time.Millisecond)
			c.Ordered()
		}
		gone.Store(true)
		time.Sleep(watch)
		last := c.Ordered()
		find(c)
		if k := c.engine.kernel.Load(); k.phase != untrusted {
			t.Errorf("found by %s: %+v", name, k)
		}
		if h := c.Health(); h.Trusted || !errors.Is(h.Err, lost) || h.Fallbacks != 1 {
			t.Errorf("found by %s: %+v", name, h)
		}
		if ns := c.Ordered(); ns < last {
			t.Errorf("%d after %d", ns, last)
		}
		gone.Store(false)
		awaitReturn(t, &c.engine)
	}
}

// A counter that jumps once has been paused with its machine. One that keeps
// jumping is not trusted.
func TestJumpsCostTrust(t *testing.T) {
	c := trusting(t)
	jump := func(n uint64) Health {
		c.engine.mu.Lock()
		c.engine.checked = Mono.Nanos()
		c.engine.strange = c.engine.tracker.Jumps
		c.engine.tracker.Jumps += n
		c.engine.mu.Unlock()
		burst(t, c)
		return c.Health()
	}
	if h := jump(1); !h.Trusted {
		t.Errorf("after one jump: %+v", h)
	}
	if h := jump(manyJumps); h.Trusted || h.Err != errJumps || h.Fallbacks != 1 {
		t.Errorf("after %d jumps: %+v", manyJumps, h)
	}
}

// A comparison that was made with GOMAXPROCS at 1 is made again when it can be
// made better.
func TestComparisonRefined(t *testing.T) {
	if !tsc.Supported {
		t.Skip("no counter in this build")
	}
	c := new(comparison)
	wait := func(coarse bool) {
		t.Helper()
		for range 20_000 {
			done, err := c.compared()
			c.mu.Lock()
			reached := done && !c.running && (c.coarse == coarse || c.others == 0)
			c.mu.Unlock()
			if reached {
				return
			}
			if err != nil && !errors.Is(err, tsc.ErrBusy) {
				t.Skip(err)
			}
			time.Sleep(time.Millisecond)
		}
		t.Skip("too busy a machine")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	wait(true)
	first := slices.Clone(c.offsets)
	runtime.GOMAXPROCS(2)
	wait(false)
	t.Log(first, "then", c.offsets)
	if len(first) != len(c.offsets) {
		t.Errorf("%v, then %v", first, c.offsets)
	}
}

// Counters that are out of step are not used, and never will be.
func TestApart(t *testing.T) {
	trusting(t) // the comparison has been done
	old := cpus.offsets
	set := func(offsets []tsc.Offset) {
		cpus.mu.Lock()
		defer cpus.mu.Unlock()
		cpus.offsets = offsets
	}
	defer set(old)
	set([]tsc.Offset{{CPU: 1, Low: 500, High: 900}})
	c := new(TSC)
	for c.Health().Err == ErrCalibrating {
		time.Sleep(time.Millisecond)
	}
	h := c.Health()
	if h.Trusted || !errors.Is(h.Err, errApart) {
		t.Errorf("%+v", h)
	}
	set(old)
	time.Sleep(2 * calibration)
	if h := c.Health(); h.Trusted {
		t.Errorf("later: %+v", h)
	}
	checkBound(t, c, 10*time.Millisecond)
}

// Counters that advance in steps may be apart by one more than messages tell.
func TestReportedOffset(t *testing.T) {
	c := comparison{offsets: []tsc.Offset{{CPU: 1, Low: -100, High: 90}, {CPU: 2, Low: -20, High: 30}}, others: 3}
	var h Health
	c.report(&h, 1e9, 26)
	if h.Offset != 126*time.Nanosecond || h.Compared != 2 || h.Others != 3 {
		t.Errorf("%+v", h)
	}
}
