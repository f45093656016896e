package timer_test

import (
	"math"
	"testing"
	"time"

	"github.com/detent-go/detent/internal/suite"
	"github.com/detent-go/detent/timer"
)

// Deadlines that have passed, however long ago, fire at once and count as on
// time.
func TestDeadlinePassed(t *testing.T) {
	eachService(t, func(t *testing.T, open func() *timer.Service) {
		s := open()
		defer closes(t, s)
		now := time.Now()
		past := []time.Time{
			{}, time.Unix(0, 0), now, now.Add(-1), now.Add(-time.Hour), now.Add(-200 * year), now.Add(math.MinInt64),
			now.Round(0), now.Round(0).Add(-time.Hour), time.Unix(-1<<62, 0),
		}
		for _, at := range past {
			s.SleepUntil(at)
			suite.Await(t, "NewTimerAt fired", s.NewTimerAt(at).C)
			called := make(chan struct{})
			s.AfterFuncAt(at, func() { close(called) })
			suite.Await(t, "AfterFuncAt fired", called)
			tm := s.NewTimer(time.Hour)
			if !tm.ResetAt(at) {
				t.Error("ResetAt of a pending timer = false")
			}
			suite.Await(t, "ResetAt fired", tm.C)
		}
		if late := s.Stats().Lateness.Max(); late > time.Since(now) {
			t.Errorf("a timer counts as %v late, %v after the first was started", late, time.Since(now))
		}
	})
}

// Deadlines as far away as there are never come, and can be stopped.
func TestDeadlineFar(t *testing.T) {
	s := mustNew(t, nil)
	now := time.Now()
	for _, at := range []time.Time{
		now.Add(200 * year), now.Add(math.MaxInt64), now.Round(0).Add(math.MaxInt64),
		time.Unix(1<<40, 0), time.Unix(1<<62, 0), now.Add(math.MaxInt64).Add(math.MaxInt64),
	} {
		tm, f := s.NewTimerAt(at), s.AfterFuncAt(at, func() { t.Errorf("%v has come", at) })
		near := s.NewTimer(0)
		if !near.ResetAt(at) {
			t.Error("ResetAt before anything was received = false")
		}
		suite.Await(t, "a timer fired beside them", s.After(time.Millisecond))
		for _, tm := range []*timer.Timer{tm, f, near} {
			if !tm.Stop() {
				t.Errorf("Stop of a timer of %v = false", at)
			}
		}
	}
}

// A time with a monotonic reading is taken by that, to the nanosecond.
func TestDeadlineMonotonic(t *testing.T) {
	s := mustNew(t, nil)
	for range 20 {
		at := time.Now().Add(2 * time.Millisecond)
		s.SleepUntil(at)
		if early := time.Until(at); early > 0 {
			t.Errorf("SleepUntil: %v early", early)
		}
		at = time.Now().Add(2 * time.Millisecond)
		if v := suite.Await(t, "NewTimerAt fired", s.NewTimerAt(at).C); v.Before(at) {
			t.Errorf("NewTimerAt: %v early", at.Sub(v))
		}
	}
}

// A time without a monotonic reading is one of the wall clock.
func TestDeadlineWall(t *testing.T) {
	s := mustNew(t, nil)
	for range 20 {
		before := time.Now()
		at := before.Round(0).Add(2 * time.Millisecond)
		s.SleepUntil(at)
		after := time.Now()
		if step := after.Round(0).Sub(before.Round(0)) - after.Sub(before); step.Abs() > 100*time.Microsecond {
			t.Logf("the wall clock was set by %v", step)
			continue
		}
		if early := at.Sub(after.Round(0)); early > 0 {
			t.Errorf("%v early", early)
		}
	}
}

func TestDeadlineMisuse(t *testing.T) {
	s := mustNewOpen(t, nil)
	tm := s.NewTimer(time.Hour)
	closes(t, s)
	wantClosed(t, "NewTimerAt", func() { s.NewTimerAt(time.Time{}) })
	wantClosed(t, "AfterFuncAt", func() { s.AfterFuncAt(time.Now().Add(time.Hour), func() {}) })
	wantClosed(t, "ResetAt", func() { tm.ResetAt(time.Now()) })
	for want, f := range map[string]func(){
		"timer: AfterFuncAt called with a nil function": func() { timer.AfterFuncAt(time.Time{}, nil) },
		"timer: ResetAt called on uninitialized Timer":  func() { new(timer.Timer).ResetAt(time.Time{}) },
	} {
		func() {
			defer func() {
				if got := recover(); got != want {
					t.Errorf("panic value %v, want %q", got, want)
				}
			}()
			f()
		}()
	}
}
