package clock

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/detent-go/detent/internal/tsc"
)

var (
	errJumps = errors.New("counter and kernel's clock keep jumping apart")
	errApart = errors.New("the CPUs' counters are not in step")
	errBusy  = errors.New("the CPUs' counters have not been compared yet")
)

// clocksourceFile is where the kernel tells by what it keeps time. A variable for
// tests in emulators, where it is the host's.
var clocksourceFile = "/sys/devices/system/clocksource/clocksource0/current_clocksource"

// checkClocksource returns why the kernel does not keep time by the counter: nil
// if it does.
func checkClocksource() error {
	want := "tsc"
	if runtime.GOARCH == "arm64" {
		want = "arch_sys_counter"
	}
	name, err := os.ReadFile(clocksourceFile)
	if err != nil {
		return fmt.Errorf("what the kernel's clocksource is cannot be seen: %w", err)
	}
	if got := strings.TrimSpace(string(name)); got != want {
		return fmt.Errorf("the kernel's clocksource is %q, not %q", got, want)
	}
	return nil
}

// cpus is the comparison of the CPUs' counters, once for the process.
var cpus comparison

type comparison struct {
	mu      sync.Mutex
	running bool
	done    bool
	coarse  bool          // done with a single thread, for GOMAXPROCS was 1
	err     error         // of the last try
	next    time.Duration // by Mono, not to be tried again before
	pause   time.Duration // between the last try and that
	offsets []tsc.Offset
	others  int
}

const (
	comparisonBudget = 50 * time.Millisecond

	// Tries that failed because the machine was busy are repeated after a
	// pause, which doubles: each may cost two CPUs some 25 ms.
	firstPause = 50 * time.Millisecond
	lastPause  = 5 * time.Second
)

// compared tells whether the comparison has been done, and starts it in the
// background if not, or if it can be done better by now. The error is errApart if
// counters are out of step; with done false it is why the last try was in vain,
// nil for the first.
func (c *comparison) compared() (done bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	wanted := !c.done || c.coarse && runtime.GOMAXPROCS(0) > 1
	if wanted && !c.running && time.Duration(Mono.Nanos()) >= c.next {
		c.running = true
		known := c.offsets
		if c.coarse {
			known = nil
		}
		go c.run(known)
	}
	for _, o := range c.offsets {
		if o.Apart() {
			return c.done, fmt.Errorf("%w: %v ahead of the first", errApart, o)
		}
	}
	return c.done, c.err
}

func (c *comparison) run(known []tsc.Offset) {
	offsets, others, coarse, err := tsc.CompareCPUs(known, comparisonBudget)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running = false
	c.others = others
	if err == nil || !c.done {
		c.offsets, c.coarse = offsets, coarse
	}
	if err == nil {
		c.done, c.err = true, nil
		return
	}
	c.err = fmt.Errorf("%w: %w", errBusy, err)
	c.pause = min(max(2*c.pause, firstPause), lastPause)
	c.next = time.Duration(Mono.Nanos()) + c.pause
}

// report fills in what has been found, hz being the counter's frequency and grain
// its step in ticks: counters that are apart by less than a step show nothing of it.
func (c *comparison) report(h *Health, hz float64, grain uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h.Compared, h.Others = len(c.offsets), c.others
	if hz == 0 {
		return
	}
	for _, o := range c.offsets {
		h.Offset = max(h.Offset, time.Duration(math.Ceil(float64(o.Largest()+int64(grain))*1e9/hz)))
	}
}
