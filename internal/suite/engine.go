package suite

import (
	"testing"
	"time"
)

// Timer is what the suite needs of an engine's timer.
type Timer interface {
	C() <-chan time.Time
	Stop() bool
	Reset(d time.Duration) bool
}

// Ticker is what the suite needs of an engine's ticker.
type Ticker interface {
	C() <-chan time.Time
	Stop()
	Reset(d time.Duration)
}

// Engine is a timer engine under test.
type Engine struct {
	// Name is the name of the engine's subtests.
	Name string

	// Prefix opens the engine's panic messages: "time: " or "timer: ".
	Prefix string

	NewTimer  func(d time.Duration) Timer
	AfterFunc func(d time.Duration, f func()) Timer
	After     func(d time.Duration) <-chan time.Time
	Sleep     func(d time.Duration)
	NewTicker func(d time.Duration) Ticker
	Tick      func(d time.Duration) <-chan time.Time

	// ZeroTimer and ZeroTicker return values that nothing has initialized.
	ZeroTimer  func() Timer
	ZeroTicker func() Ticker

	// Pending is the number of timers that wait; nil where it is not counted.
	Pending func() uint64

	// Heavy asks for the full sizes of the storms: a million timers, 100,000
	// sleeps. The other engines get a tenth, to keep the whole run short.
	Heavy bool

	// Slack is how much later than it could the engine fires, on purpose, at
	// the most, whatever the duration.
	Slack time.Duration

	// Lacks holds the capabilities that the engine does not have, each with
	// the reason. Tests of a capability that an engine lacks are skipped.
	Lacks map[Capability]string

	// goroutines is how many there were before the first test.
	goroutines int
}

// Capability is a behaviour that not every engine has.
type Capability string

const (
	// Concurrent callbacks may block and wait for one another.
	Concurrent Capability = "callbacks run as if each in its own goroutine"

	// NilPanics is a panic of AfterFunc(d, nil) in the caller.
	NilPanics Capability = "AfterFunc(d, nil) panics at the call"

	// BoundedStorm allows [stormGoroutines] more goroutines however many
	// timers are due at once.
	BoundedStorm Capability = "timers due at once make a bounded number of goroutines"

	// Counted engines tell how many timers wait, which is how a test sees
	// that one has been collected.
	Counted Capability = "pending timers are counted"

	// Dropped tickers, which nobody refers to any more and nobody has
	// stopped, go with the next collection.
	Dropped Capability = "a ticker that is dropped is collected"

	// ExactResults are those of Stop and Reset while others receive: true for
	// a value that nobody receives, and for no other.
	ExactResults Capability = "Stop and Reset claim no value that another goroutine is receiving"

	// SyncChannels are channels without a buffer: len and cap are 0.
	SyncChannels Capability = "len and cap of C are 0"
)

// capabilities are all there are.
var capabilities = []Capability{Concurrent, NilPanics, BoundedStorm, Counted, Dropped, ExactResults, SyncChannels}

// need skips the test if the engine lacks c.
func (e Engine) need(t *testing.T, c Capability) {
	t.Helper()
	if why, lacks := e.Lacks[c]; lacks {
		t.Skipf("%s lacks %q: %s", e.Name, c, why)
	}
}

// size is full for a heavy engine in a full run, and a tenth of it otherwise:
// in short runs, under the race detector, and where there is one thread only.
func (e Engine) size(full int) int {
	if !e.Heavy {
		full /= 10
	}
	return Scale(full)
}

// timerKinds are the two ways to make a timer with a channel: the channel
// timer itself, and a timer with a function that sends. An engine may
// treat them differently.
func (e Engine) timerKinds() map[string]func(d time.Duration) Timer {
	return map[string]func(d time.Duration) Timer{
		"chan": e.NewTimer,
		"func": func(d time.Duration) Timer {
			c := make(chan time.Time, 1)
			return funcTimer{e.AfterFunc(d, func() { c <- time.Now() }), c}
		},
	}
}

// funcTimer is a timer with a function that sends on c.
type funcTimer struct {
	Timer
	c chan time.Time
}

func (t funcTimer) C() <-chan time.Time { return t.c }
