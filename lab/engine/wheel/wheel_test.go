package wheel_test

import (
	"testing"
	"time"

	"github.com/detent-go/detent/lab/engine"
	"github.com/detent-go/detent/lab/engine/wheel"
	"github.com/detent-go/detent/lab/internal/enginetest"
)

func TestSuite(t *testing.T) { enginetest.Suite(t, wheel.Info(), enginetest.Over()) }

func TestClose(t *testing.T) { enginetest.Close(t, wheel.Info(), 0) }

// TestTurnsWhileIdle: a wheel with a fixed tick never rests.
func TestTurnsWhileIdle(t *testing.T) {
	e := enginetest.Open(t, func() (engine.Engine, error) {
		c, err := wheel.New(100 * time.Microsecond)
		return engine.Over("wheel", c), err
	})
	e.AfterFunc(time.Hour, func() {})
	for wakeups := uint64(0); wakeups < 10; time.Sleep(time.Millisecond) {
		c, _ := e.Counters()
		wakeups = c.Wakeups
	}
}

func TestNegativeTick(t *testing.T) {
	if _, err := wheel.New(-1); err == nil {
		t.Error("New(-1) = nil error")
	}
}
