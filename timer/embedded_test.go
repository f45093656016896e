package timer_test

import (
	"fmt"
	"reflect"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/detent-go/detent/internal/suite"
	"github.com/detent-go/detent/timer"
)

// lease has two timers, and tells them apart.
type lease struct {
	renew, expire timer.Embedded
	renewed       atomic.Int64
	expired       atomic.Int64
}

func newLease(s *timer.Service) *lease {
	l := new(lease)
	l.renew.Init(s, l)
	l.expire.Init(s, l)
	return l
}

func (l *lease) Expire(t *timer.Embedded) {
	switch t {
	case &l.renew:
		l.renewed.Add(1)
	case &l.expire:
		l.expired.Add(1)
	default:
		panic("neither timer")
	}
}

func TestEmbeddedTwo(t *testing.T) {
	eachService(t, func(t *testing.T, open func() *timer.Service) {
		s := open()
		defer closes(t, s)
		l := newLease(s)
		for round := range int64(20) {
			if l.renew.Reset(time.Millisecond) || l.expire.ResetAt(time.Now().Add(time.Hour)) {
				t.Error("Reset of a timer that is not pending = true")
			}
			if !l.expire.Reset(2 * time.Hour) {
				t.Error("Reset of a pending timer = false")
			}
			suite.Eventually(t, "the first timer fired", func() bool { return l.renewed.Load() == round+1 })
			if l.renew.Stop() || !l.expire.Stop() || l.expire.Stop() {
				t.Error("Stop: want false after firing, true if pending, false if stopped")
			}
		}
		if l.expired.Load() != 0 {
			t.Error("a stopped timer fired")
		}
	})
}

// wantPanic checks that f panics with the given value.
func wantPanic(t testing.TB, want string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if got := recover(); got != want {
			t.Errorf("panic value %v, want %q", got, want)
		}
	}()
	f()
}

func TestEmbeddedMisuse(t *testing.T) {
	s := mustNewOpen(t, nil)
	at := time.Now().Add(time.Hour)
	var zero timer.Embedded
	wantPanic(t, "timer: Stop called on uninitialized Embedded", func() { zero.Stop() })
	wantPanic(t, "timer: Reset called on uninitialized Embedded", func() { zero.Reset(time.Hour) })
	wantPanic(t, "timer: ResetAt called on uninitialized Embedded", func() { zero.ResetAt(at) })
	wantPanic(t, "timer: Init called with a nil Expirer", func() { zero.Init(s, nil) })

	l := newLease(s)
	l.expire.Reset(time.Hour)
	wantPanic(t, "timer: Init called on pending Embedded", func() { l.expire.Init(s, l) })
	wantPanic(t, "timer: Init called on pending Embedded", func() { l.expire.Init(nil, l) })

	// A copy, made in a way that go vet does not see.
	var c timer.Embedded
	reflect.ValueOf(&c).Elem().Set(reflect.ValueOf(&l.expire).Elem())
	wantPanic(t, "timer: Stop called on copied Embedded", func() { c.Stop() })
	wantPanic(t, "timer: Reset called on copied Embedded", func() { c.Reset(time.Hour) })
	wantPanic(t, "timer: ResetAt called on copied Embedded", func() { c.ResetAt(at) })
	c.Init(s, l) // as a timer of its own
	if c.Stop() || c.Reset(time.Hour) || !c.Stop() || !l.expire.Stop() {
		t.Error("a copy that was initialized is not a timer of its own")
	}
	l.expire.Init(nil, l) // of another service
	if l.expire.Reset(time.Hour) || !l.expire.Stop() {
		t.Error("a timer that was initialized again does not work")
	}

	l.renew.Reset(time.Hour)
	closes(t, s)
	if l.renew.Stop() {
		t.Error("Stop after Close = true")
	}
	wantClosed(t, "Reset", func() { l.renew.Reset(time.Hour) })
	wantClosed(t, "ResetAt", func() { l.renew.ResetAt(at) })
	l.renew.Init(nil, l) // pending for ever, and not any more
	if l.renewed.Load() != 0 {
		t.Error("fired after Close")
	}
}

// go vet knows copies of a type by its field with the methods of a lock.
func TestEmbeddedNoCopy(t *testing.T) {
	f := reflect.TypeFor[timer.Embedded]().Field(0)
	if f.Type.Size() != 0 || !reflect.PointerTo(f.Type).Implements(reflect.TypeFor[sync.Locker]()) {
		t.Errorf("the first field is a %v, want one of no size that go vet takes for a lock", f.Type)
	}
}

// What an Embedded takes in its user's struct is in its documentation.
// A timer can be any field of a struct, also where that aligns it to 4 bytes.
func TestEmbeddedAnywhere(t *testing.T) {
	fired := make(chanExpirer, 2)
	var c struct {
		a    int32
		idle timer.Embedded
		b    int32
		slow timer.Embedded
	}
	for _, e := range []*timer.Embedded{&c.idle, &c.slow} {
		e.Init(nil, fired)
		e.Reset(time.Hour)
		e.Reset(2 * time.Hour) // is a push back
		if !e.Stop() || e.Reset(time.Microsecond) {
			t.Error("Stop of a pending timer = false, or Reset of a stopped one = true")
		}
		if got := suite.Await(t, "a timer fired", fired); got != e {
			t.Error("another timer fired")
		}
	}
}

// Inside its own Expire a timer is not pending, and can be reset, stopped and
// initialized again.
func TestEmbeddedInside(t *testing.T) {
	s := mustNew(t, nil)
	done := make(chan struct{})
	calls := 0
	u := new(user)
	u.f = func() {
		if calls++; calls < 200 {
			if u.timer.Stop() || u.timer.Reset(time.Microsecond) {
				t.Error("pending inside its own Expire")
			}
			return
		}
		u.timer.Init(s, u)
		u.timer.Reset(time.Hour)
		wantPanic(t, "timer: Init called on pending Embedded", func() { u.timer.Init(s, u) })
		if !u.timer.Stop() {
			t.Error("Stop of a pending timer = false")
		}
		close(done)
	}
	u.timer.Init(s, u)
	u.timer.Reset(0)
	suite.Await(t, "the last call came", done)
}

type chanExpirer chan *timer.Embedded

func (c chanExpirer) Expire(t *timer.Embedded) { c <- t }

func TestEmbeddedSize(t *testing.T) {
	if size := reflect.TypeFor[timer.Embedded]().Size(); size != 40 && strconv.IntSize == 64 {
		t.Errorf("an Embedded takes %d bytes, want 40", size)
	}
}

func TestEmbeddedAllocs(t *testing.T) {
	eachService(t, func(t *testing.T, open func() *timer.Service) {
		s := open()
		defer closes(t, s)
		l := newLease(s)
		allocatesNothing(t, "Init", func() { l.expire.Init(s, l) })
		allocatesNothing(t, "Reset and Stop", func() { l.expire.Reset(time.Hour); l.expire.Stop() })
		at := time.Now().Add(time.Hour)
		allocatesNothing(t, "ResetAt and Stop", func() { l.expire.ResetAt(at); l.expire.Stop() })
		d := time.Hour
		allocatesNothing(t, "Reset to later", func() { l.expire.Reset(d); d += time.Second })
		allocatesNothing(t, "Reset to earlier", func() { l.expire.Reset(d); d -= time.Second })
		for _, d := range []time.Duration{0, 20 * time.Microsecond, time.Millisecond} {
			fired := make(chan struct{}, 1)
			u := &user{f: func() { fired <- struct{}{} }}
			u.timer.Init(s, u)
			allocatesNothing(t, fmt.Sprintf("firing after %v", d), func() {
				u.timer.Reset(d)
				<-fired
			})
		}
	})
}

// A pending timer keeps the struct that it is a field of, until it fires or is
// stopped.
func TestEmbeddedCollected(t *testing.T) {
	s := mustNew(t, nil)
	var fired atomic.Int64
	stopped := droppedUser(s, time.Hour, &fired)
	stopped.Value().timer.Stop()
	short := droppedUser(s, 20*time.Millisecond, &fired)
	long := droppedUser(s, time.Hour, &fired)
	suite.Eventually(t, "what is not pending is collected", func() bool {
		runtime.GC()
		return stopped.Value() == nil && short.Value() == nil
	})
	if fired.Load() != 1 {
		t.Errorf("%d fired, want the one of 20ms", fired.Load())
	}
	u := long.Value()
	if u == nil {
		t.Fatal("a struct with a pending timer was collected")
	}
	if !u.timer.Reset(0) {
		t.Error("Reset of a pending timer = false")
	}
	suite.Eventually(t, "it fired", func() bool { return fired.Load() == 2 })
}

//go:noinline
func droppedUser(s *timer.Service, d time.Duration, fired *atomic.Int64) weak.Pointer[user] {
	u := &user{f: func() { fired.Add(1) }}
	u.timer.Init(s, u)
	u.timer.Reset(d)
	return weak.Make(u)
}

// Inside a bubble an Embedded is one of the bubble's time; across the border it
// can be stopped, and not reset.
func TestBubbleEmbedded(t *testing.T) {
	s := mustNew(t, nil)
	out := newLease(s)
	out.expire.Reset(time.Hour)
	synctest.Test(t, func(t *testing.T) {
		in := newLease(s)
		if in.renew.Stop() || in.renew.Reset(time.Hour) || !in.renew.Reset(time.Minute) {
			t.Error("Stop and Reset before and after the start: want false, false, true")
		}
		in.expire.ResetAt(time.Now().Add(time.Minute + 1))
		wantPanic(t, "timer: Init called on pending Embedded", func() { in.renew.Init(s, in) })
		time.Sleep(time.Minute)
		synctest.Wait()
		if in.renewed.Load() != 1 || in.expired.Load() != 0 {
			t.Errorf("fired %d and %d times, want 1 and 0", in.renewed.Load(), in.expired.Load())
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if in.renewed.Load() != 1 || in.expired.Load() != 1 {
			t.Errorf("fired %d and %d times, want 1 and 1", in.renewed.Load(), in.expired.Load())
		}
		wantPanic(t, "timer: Reset called in a synctest bubble on an Embedded initialized outside", func() { out.expire.Reset(0) })
		wantPanic(t, "timer: ResetAt called in a synctest bubble on an Embedded initialized outside", func() {
			out.expire.ResetAt(time.Now())
		})
		if !out.expire.Stop() {
			t.Error("Stop in a bubble, of a pending timer made outside = false")
		}
	})
}

// BenchmarkEmbedded is what a connection does with its idle timeout.
func BenchmarkEmbedded(b *testing.B) {
	s := mustNew(b, nil)
	b.Run("start+stop/Embedded", func(b *testing.B) {
		l := newLease(s)
		b.ReportAllocs()
		for b.Loop() {
			l.expire.Reset(time.Minute)
			l.expire.Stop()
		}
	})
	b.Run("start+stop/Timer", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s.AfterFunc(time.Minute, func() {}).Stop()
		}
	})
	b.Run("start+stop/time", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			time.AfterFunc(time.Minute, func() {}).Stop()
		}
	})
	b.Run("reset/Embedded", func(b *testing.B) {
		l := newLease(s)
		l.expire.Reset(time.Minute)
		b.ReportAllocs()
		for b.Loop() {
			l.expire.Reset(time.Minute)
		}
		l.expire.Stop()
	})
	b.Run("reset/time", func(b *testing.B) {
		tm := time.AfterFunc(time.Minute, func() {})
		b.ReportAllocs()
		for b.Loop() {
			tm.Reset(time.Minute)
		}
		tm.Stop()
	})
}
