package pool_test

import (
	"testing"
	"time"

	"github.com/detent-go/detent/lab/engine"
	"github.com/detent-go/detent/lab/engine/pool"
	"github.com/detent-go/detent/lab/internal/enginetest"
)

func TestSuite(t *testing.T) { enginetest.Suite(t, pool.Info(), enginetest.Over()) }

func TestClose(t *testing.T) {
	enginetest.Close(t, pool.Info(), 3)
	enginetest.Close(t, pool.OneInfo(), 0)
}

func TestThreads(t *testing.T) { enginetest.Threads(t, pool.Info(), 3) }

// TestSpin: with one pool and a thread that spins, timers are still never early,
// and an earlier one that is started while the thread spins comes first.
func TestSpin(t *testing.T) {
	e := enginetest.Open(t, func() (engine.Engine, error) {
		c, err := pool.New(pool.Options{Pools: 1, Spin: 3 * time.Millisecond})
		if err != nil {
			return nil, err
		}
		return engine.Over("pool", c), nil
	})
	for range 100 {
		start := time.Now()
		second := e.After(2 * time.Millisecond)
		<-e.After(300 * time.Microsecond)
		if d := time.Since(start); d < 300*time.Microsecond {
			t.Fatalf("300us took %v", d)
		}
		<-second
		if d := time.Since(start); d < 2*time.Millisecond {
			t.Fatalf("2ms took %v", d)
		}
	}
}

func TestOptions(t *testing.T) {
	for _, o := range []pool.Options{{Pools: -1}, {Spin: -1}} {
		if _, err := pool.New(o); err == nil {
			t.Errorf("New(%+v) = nil error", o)
		}
	}
}
