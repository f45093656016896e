//go:build amd64 || arm64

package timer_test

import (
	"context"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/detent-go/detent/timer"
)

// setWall sets the machine's wall clock by d, and at the end of the test back.
func setWall(t *testing.T, d time.Duration) {
	t.Helper()
	move := func(d time.Duration) error {
		const offset, nano = 0x0100, 0x2000 // ADJ_SETOFFSET, ADJ_NANO
		sec := d / time.Second
		if d < sec*time.Second {
			sec--
		}
		x := unix.Timex{Modes: offset | nano}
		x.Time = unix.Timeval{Sec: int64(sec), Usec: int64(d - sec*time.Second)}
		_, err := unix.Adjtimex(&x)
		return err
	}
	if err := move(d); err != nil {
		t.Skipf("the clock cannot be set here: %v", err)
	}
	t.Cleanup(func() {
		if err := move(-d); err != nil {
			t.Errorf("the wall clock is off by %v, and cannot be set back: %v", d, err)
		}
	})
}

// TestIntervalClockSet really sets the wall clock, which is everybody's: aligned
// ticks follow, within a period. Others take no notice.
func TestIntervalClockSet(t *testing.T) {
	if os.Getenv("DETENT_SICK") != "1" || os.Getuid() != 0 {
		t.Skip("sets the machine's clock: needs root, and DETENT_SICK=1")
	}
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
			setWall(t, by)
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
