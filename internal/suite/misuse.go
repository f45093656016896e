package suite

import (
	"math"
	"testing"
	"time"
)

func testMisuse(t *testing.T, e Engine) {
	mustPanic(t, "zero Timer", e.Prefix+"Stop called on uninitialized Timer", func() { e.ZeroTimer().Stop() })
	mustPanic(t, "zero Timer", e.Prefix+"Reset called on uninitialized Timer", func() { e.ZeroTimer().Reset(time.Second) })
	mustPanic(t, "zero Ticker", e.Prefix+"Reset called on uninitialized Ticker", func() { e.ZeroTicker().Reset(time.Second) })
	// Package time lets this one pass, because old programs do it.
	e.ZeroTicker().Stop()

	for _, d := range []time.Duration{0, -1, -time.Hour, math.MinInt64} {
		mustPanic(t, "NewTicker", "non-positive interval for NewTicker", func() { e.NewTicker(d) })
		mustPanic(t, "zero Ticker", "non-positive interval for Ticker.Reset", func() { e.ZeroTicker().Reset(d) })
		tk := e.NewTicker(time.Millisecond)
		mustPanic(t, "Ticker.Reset", "non-positive interval for Ticker.Reset", func() { tk.Reset(d) })
		// The ticker goes on as it was.
		Await(t, "a tick came after a misuse", tk.C())
		tk.Stop()
		if c := e.Tick(d); c != nil {
			t.Errorf("Tick(%v) = %v, want nil", d, c)
		}
	}
}

// Package time crashes the program when such a timer fires, where nobody can
// tell any more who started it.
func testNilCallback(t *testing.T, e Engine) {
	e.need(t, NilPanics)
	for _, d := range []time.Duration{-1, 0, time.Millisecond, time.Hour} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("AfterFunc(%v, nil) did not panic", d)
				}
			}()
			e.AfterFunc(d, nil)
		}()
	}
	Await(t, "timers work after a misuse", e.After(0))
}
