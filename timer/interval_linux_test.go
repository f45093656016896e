package timer_test

import (
	"context"
	"testing"
	"time"

	"github.com/detent-go/detent/timer"
)

// TestIntervalClockSet really sets the wall clock, which is everybody's: aligned
// ticks follow, within a period. Others take no notice.
func TestIntervalClockSet(t *testing.T) {
	setWall := setter(t)
	const period = 200 * time.Millisecond
	for _, by := range []time.Duration{10 * period, -10 * period, period / 2, -period / 2} {
		t.Run(by.String(), func(t *testing.T) {
			s := mustNew(t, nil)
			ctx := context.Background()
			aligned := s.NewInterval(period, &timer.TickOptions{Aligned: true})
			plain := s.NewInterval(period, nil)
			before, err := aligned.Wait(ctx)
			if err != nil {
				t.Fatal(err)
			}
			first, ok := plain.Take()
			for ; !ok; first, ok = plain.Take() {
				time.Sleep(time.Millisecond)
			}
			set := time.Now()
			setWall(by)
			defer setWall(-by)
			for k := range 3 {
				tick, err := aligned.Wait(ctx)
				if err != nil {
					t.Fatal(err)
				}
				now := time.Now()
				wall := now.Round(0)
				switch {
				case tick.At.After(wall):
					t.Errorf("tick of %v at %v", tick.At, wall)
				case !tick.At.Equal(tick.At.Truncate(period)):
					t.Errorf("tick of %v", tick.At)
				case by > 0 && tick.At.Sub(before.At) != time.Duration(tick.Missed+1)*period:
					t.Errorf("tick of %v after that of %v, missed %d", tick.At, before.At, tick.Missed)
				case k == 0 && by > period && tick.Missed < int64(by/period)-2:
					t.Errorf("set forward by %v: missed %d", by, tick.Missed)
				case by < -period && !tick.At.Before(set.Round(0)):
					t.Errorf("set back by %v at %v: tick of %v", by, set, tick.At)
				}
				t.Logf("tick of %v at %v, missed %d, %v after the set", tick.At, wall, tick.Missed, now.Sub(set))
				before = tick

				next, err := plain.Wait(ctx)
				if err != nil {
					t.Fatal(err)
				}
				if gap := next.At.Sub(first.At); gap != time.Duration(next.Missed+1)*period {
					t.Errorf("an interval that is not aligned: a tick %v after the one before, missed %d", gap, next.Missed)
				}
				first = next
			}
		})
	}
}
