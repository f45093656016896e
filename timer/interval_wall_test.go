package timer

import (
	"context"
	"runtime"
	"testing"
	"time"
)

// The tests here do not set the wall clock. They make an interval wait for a time
// far off, as one does whose clock has been set back, and have it told of a set.

func newWallService(t *testing.T) *Service {
	s, err := New(&Options{Clock: Realtime})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// soon makes a tick of iv due in a moment, whatever its timer is set to.
func soon(iv *Interval) {
	iv.mu.Lock()
	defer iv.mu.Unlock()
	now := iv.now()
	iv.sched.next, iv.sched.nextAt = now.mono+time.Duration(time.Millisecond), now.wall.Add(time.Millisecond)
}

func TestIntervalFollows(t *testing.T) {
	for name, o := range map[string]*TickOptions{"plain": nil, "aligned": {Aligned: true, Offset: 30 * time.Minute}} {
		t.Run(name, func(t *testing.T) {
			s := newWallService(t)
			ticks := make(chan string, 3)
			const period = 1000 * time.Hour

			iv := s.NewInterval(period, o)
			go func() {
				if _, err := iv.Wait(context.Background()); err != nil {
					t.Error(err)
				}
				ticks <- "Wait"
			}()
			for waiting := false; !waiting; runtime.Gosched() {
				iv.mu.Lock()
				waiting = iv.changed != nil
				iv.mu.Unlock()
			}
			soon(iv)

			of := s.TickFunc(period, func(Ticked) { ticks <- "TickFunc" }, o)
			defer of.Stop()
			soon(of)

			by := s.NewInterval(period, o)
			c := by.C()
			soon(by)
			go func() {
				<-c
				if _, ok := by.Take(); !ok {
					t.Error("told of a tick that is not there")
				}
				ticks <- "C"
			}()

			idle := s.NewInterval(period, o) // nobody waits
			stopped := s.NewInterval(period, o)
			stopped.C()
			stopped.Stop()

			s.e.followers.tell()
			got := map[string]bool{}
			for range 3 {
				select {
				case name := <-ticks:
					got[name] = true
				case <-time.After(time.Minute):
					t.Fatalf("ticks by %v alone", got)
				}
			}
			runtime.KeepAlive(idle)
			runtime.KeepAlive(stopped)
		})
	}
}

// An interval that nobody has any more is not told, and nothing is kept of it.
func TestIntervalForgotten(t *testing.T) {
	s := newWallService(t)
	for range 100 {
		s.NewInterval(time.Hour, nil)
	}
	left := func() int {
		s.e.followers.mu.Lock()
		defer s.e.followers.mu.Unlock()
		return len(s.e.followers.all)
	}
	for k := 0; left() > 0; k++ {
		if k > 10_000 {
			t.Fatalf("%d intervals are kept", left())
		}
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	s.e.followers.tell()
}
