package heap1_test

import (
	"testing"
	"time"

	"github.com/detent-go/detent/internal/suite"
	"github.com/detent-go/detent/lab/engine"
	"github.com/detent-go/detent/lab/engine/heap1"
	"github.com/detent-go/detent/lab/internal/enginetest"
)

// TestWake: whatever becomes the first of the heap wakes the timer goroutine, also if
// it would wake up early enough for it.
func TestWake(t *testing.T) {
	e, err := heap1.New()
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
	if wakes := e.Counters().FutexWakes; wakes != 0 {
		t.Errorf("%d wakes for a timer after the first", wakes)
	}
	first.Stop()
	start(90 * time.Minute)
	asleep(2)
	start(time.Minute)
	asleep(3)
	if wakes := e.Counters().FutexWakes; wakes != 2 {
		t.Errorf("%d wakes, want one for each timer that became the first", wakes)
	}
}
