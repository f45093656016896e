package buckets64_test

import (
	"testing"
	"time"

	"github.com/detent-go/detent/internal/suite"
	"github.com/detent-go/detent/lab/engine"
	"github.com/detent-go/detent/lab/engine/buckets64"
	"github.com/detent-go/detent/lab/internal/enginetest"
)

// TestWake: a timer that becomes the first of its bucket wakes the timer goroutine if
// that would sleep past it, and only then.
func TestWake(t *testing.T) {
	e, err := buckets64.New(1)
	enginetest.SkipUnsupported(t, err)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	start := func(d time.Duration) engine.Node { return e.Start(d, 0, func(any, uintptr) {}, nil, 0) }
	asleep := func(times uint64) {
		t.Helper()
		suite.Eventually(t, "the timer goroutine sleeps", func() bool { return e.Counters().FutexWaits >= times })
	}

	first := start(time.Hour)
	asleep(1)
	start(2 * time.Hour)
	first.Stop()
	start(90 * time.Minute)
	if c := e.Counters(); c.FutexWakes != 0 {
		t.Errorf("%d wakes for timers that are due after the sleep", c.FutexWakes)
	}
	start(time.Minute)
	asleep(2)
	if wakes := e.Counters().FutexWakes; wakes != 1 {
		t.Errorf("%d wakes for one timer before all others", wakes)
	}
}
