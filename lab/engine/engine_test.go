package engine

import (
	"math"
	"testing"
	"time"
)

func TestNextPeriod(t *testing.T) {
	for _, c := range []struct{ when, period, now, want int64 }{
		{100, 10, 100, 110},
		{100, 10, 109, 110},
		{100, 10, 110, 120}, // 110 is now, and has been fired
		{100, 10, 145, 150},
		{0, 1, 1e15, 1e15 + 1},
		{5, math.MaxInt64, 5, Infinite},
		{Infinite - 5, 10, Infinite - 5, Infinite},
	} {
		if got := NextPeriod(c.when, c.period, c.now); got != c.want {
			t.Errorf("NextPeriod(%d, %d, %d) = %d, want %d", c.when, c.period, c.now, got, c.want)
		}
	}
}

func TestDeadline(t *testing.T) {
	for _, d := range []time.Duration{math.MinInt64, -1, 0, 1, time.Hour} {
		before := Now()
		got := Deadline(d)
		after := Now()
		if add := int64(max(d, 0)); got < before+add || got > after+add {
			t.Errorf("Deadline(%v) = %d at %d..%d", d, got, before, after)
		}
	}
	if got := Deadline(math.MaxInt64); got != Infinite {
		t.Errorf("Deadline(1<<63-1) = %d", got)
	}
}
