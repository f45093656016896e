//go:build (amd64 || arm64) && !detent_portable

package clock

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The bound holds while the kernel's clock is slewed, to and fro.
func TestBoundUnderSlew(t *testing.T) {
	c := trusting(t)
	now := frequency(t)
	guard(t, "frequency", strconv.FormatInt(now, 10))
	const ppm = 1 << 16
	for _, slew := range []int64{100, -100, 0, 100, -100} {
		if err := setFrequency(slew * ppm); err != nil {
			t.Fatal(err)
		}
		mono, raw := Mono.Nanos(), Raw.Nanos()
		checkBound(t, c, *boundFor/5)
		mono, raw = Mono.Nanos()-mono, Raw.Nanos()-raw
		t.Logf("slewed by %d ppm: by %.1f", slew, (float64(mono)/float64(raw)-1)*1e6)
	}
	if h := c.Health(); h.Excess != 0 && h.Jumps == 0 {
		t.Errorf("%d lines were further off than they stated", h.Excess)
	}
}

// The kernel is really made to keep time by something else, while the TSC is in
// use by several goroutines.
func TestClocksourceSwitched(t *testing.T) {
	available, err := os.ReadFile("/sys/devices/system/clocksource/clocksource0/available_clocksource")
	if err != nil {
		t.Skip(err)
	}
	current, err := os.ReadFile(clocksourceFile)
	if err != nil {
		t.Skip(err)
	}
	old := strings.TrimSpace(string(current))
	other := ""
	for _, name := range strings.Fields(string(available)) {
		if name != old && other == "" {
			other = name
		}
	}
	if other == "" {
		t.Skipf("no clocksource but %s", old)
	}
	c := trusting(t)
	guard(t, "clocksource", old)

	var stop atomic.Bool
	var group sync.WaitGroup
	group.Go(func() {
		for !stop.Load() {
			checkOrder(t, 20_000, c.Ordered)
		}
	})
	defer group.Wait()
	defer stop.Store(true)

	if err := os.WriteFile(clocksourceFile, []byte(other), 0); err != nil {
		t.Skip("not permitted: ", err)
	}
	time.Sleep(time.Second)
	c.Ordered()
	h := c.Health()
	if err := os.WriteFile(clocksourceFile, []byte(old), 0); err != nil {
		t.Fatal(err)
	}
	if h.Trusted || h.Fallbacks != 1 || h.Err == nil || !strings.Contains(h.Err.Error(), other) {
		t.Errorf("a second after the switch to %s: %+v", other, h)
	}
	t.Log(h.Err)
	awaitReturn(t, &c.engine)
	checkBound(t, c, 100*time.Millisecond)
}

// The wall clock is really set, forth and back.
func TestNowFollowsSteps(t *testing.T) {
	guard(t, "offset", strconv.FormatInt(Real.Nanos()-Mono.Nanos(), 10))
	for name, lost := range map[string]error{"counter": nil, "kernel's clock": os.ErrInvalid} {
		t.Run(name, func(t *testing.T) {
			c := new(nowClock)
			c.engine.trust = func() error {
				if lost != nil {
					return lost
				}
				return checkClocksource()
			}
			if lost == nil {
				c.now()
				awaitTrust(t, &c.engine)
			}
			var sum time.Duration
			for _, step := range []time.Duration{
				2 * time.Millisecond, -time.Millisecond, time.Microsecond, -time.Microsecond, 100 * time.Microsecond, 0,
			} {
				if step == 0 {
					step = -sum // all of it back
				}
				sum += step
				c.now()
				if err := stepReal(step); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Millisecond)
				compareNow(t, c)
				if t.Failed() {
					t.Fatalf("after a step of %v", step)
				}
			}
		})
	}
}
