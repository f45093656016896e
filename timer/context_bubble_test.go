package timer_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/detent-go/detent/internal/suite"
	"github.com/detent-go/detent/timer"
)

func TestContextBubble(t *testing.T) {
	outside := mustNew(t, nil)
	for name, service := range map[string]func(t *testing.T) *timer.Service{
		"default": func(*testing.T) *timer.Service { return timer.Default() },
		"outside": func(*testing.T) *timer.Service { return outside },
		"inside":  func(t *testing.T) *timer.Service { return mustNew(t, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			before := time.Now()
			synctest.Test(t, func(t *testing.T) { testContextBubble(t, service(t)) })
			if took := time.Since(before); took > 20*time.Second {
				t.Errorf("the bubble took %v of real time", took)
			}
		})
	}
}

func testContextBubble(t *testing.T, s *timer.Service) {
	slow := errors.New("slow")
	for _, d := range []time.Duration{1, time.Microsecond, 1234567, time.Hour, year} {
		start := time.Now()
		ctx, cancel := s.WithTimeoutCause(context.Background(), d, slow)
		if at, _ := ctx.Deadline(); at.Sub(start) != d {
			t.Errorf("the deadline of WithTimeout(%v) is at +%v", d, at.Sub(start))
		}
		child, cancelChild := context.WithCancel(context.WithValue(ctx, twinKey(0), 0))
		time.Sleep(d - 1)
		synctest.Wait()
		wantEnd(t, "a nanosecond before", ctx, nil, nil)
		<-child.Done()
		wantPassed(t, "a deadline passed", start, d)
		wantEnd(t, "context", ctx, context.DeadlineExceeded, slow)
		wantEnd(t, "child", child, context.DeadlineExceeded, slow)
		cancelChild()
		cancel()
	}

	start := time.Now()
	ctx, cancel := s.WithDeadline(context.Background(), start.Add(year))
	<-func() <-chan struct{} {
		ctx, cancel := s.WithDeadline(ctx, start.Add(time.Minute))
		t.Cleanup(cancel)
		return ctx.Done()
	}()
	wantPassed(t, "a child's deadline passed", start, time.Minute)
	cancel()
	wantEnd(t, "canceled", ctx, context.Canceled, context.Canceled)

	// Nothing is left of contexts whose parent has ended, or that were canceled:
	// the bubble would not end.
	for name, parent := range map[string]context.Context{"std": nil, "foreign": newForeign(), "plain": plain{newForeign()}} {
		end := func() {}
		if parent == nil {
			parent, end = context.WithCancel(context.Background())
		}
		var all []context.Context
		for i := range 10 {
			ctx, cancel := s.WithTimeout(parent, year)
			defer cancel()
			if i%2 == 0 || name == "plain" {
				cancel()
			}
			all = append(all, ctx)
		}
		end()
		synctest.Wait()
		for i, ctx := range all {
			if ended := ctx.Err() != nil; ended != (i%2 == 0 || name != "foreign") {
				t.Errorf("%s: context %d ended: %v", name, i, ended)
			}
		}
	}
}

// What was made outside goes on in real time.
func TestContextBubbleOutside(t *testing.T) {
	s := mustNew(t, nil)
	start := time.Now()
	soon, cancelSoon := s.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancelSoon()
	soon.Done()
	parent, cancelParent := s.WithTimeout(context.Background(), far)
	defer cancelParent()
	parent.Done()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := s.WithTimeout(parent, time.Hour)
		defer cancel()
		start := time.Now()
		<-ctx.Done()
		wantPassed(t, "the deadline of a child passed", start, time.Hour)
		wantEnd(t, "a child of one from outside", ctx, context.DeadlineExceeded, context.DeadlineExceeded)
		time.Sleep(year)
		wantEnd(t, "one from outside", parent, nil, nil)
	})
	suite.Await(t, "the deadline of one made outside passed", soon.Done())
	if d := time.Since(start); d < 50*time.Millisecond {
		t.Errorf("early, after %v", d)
	}
}

// What is started for contexts in a bubble ends with them, though others outside
// have the same parent.
func TestContextBubbleSharedParent(t *testing.T) {
	s := mustNew(t, nil)
	parent := plain{newForeign()}
	four := func() (cancels []context.CancelFunc) {
		for range 4 {
			_, cancel := s.WithTimeout(parent, far)
			cancels = append(cancels, cancel)
		}
		return cancels
	}
	ask, made := make(chan struct{}), make(chan []context.CancelFunc, 1)
	go func() {
		<-ask
		made <- four()
	}()
	var outside []context.CancelFunc
	synctest.Test(t, func(t *testing.T) {
		inside := four()
		close(ask)
		outside = <-made
		for _, cancel := range inside {
			cancel()
		}
	})
	for _, cancel := range outside {
		cancel()
	}
}

func TestContextBubbleClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mustNewOpen(t, nil)
		parent, cancelParent := context.WithCancel(context.Background())
		a, cancelA := s.WithTimeout(context.Background(), time.Hour)
		b, cancelB := s.WithTimeout(parent, time.Hour)
		defer cancelB()
		closes(t, s)
		time.Sleep(year)
		wantEnd(t, "after Close", a, nil, nil)
		wantEnd(t, "after Close", b, nil, nil)
		wantClosed(t, "WithTimeout", func() { s.WithTimeout(parent, time.Hour) })
		cancelA()
		cancelParent()
		wantEnd(t, "canceled", a, context.Canceled, context.Canceled)
		wantEnd(t, "parent canceled", b, context.Canceled, context.Canceled)
	})
}
