package timer

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/detent-go/detent/internal/shard"
)

// fakeWall is a service on a clock that stands in for the wall clock.
type fakeWall struct {
	*Service
	moved  func()
	jumped func()       // if not nil, is called by who has read it then
	shift  atomic.Int64 // by which it is ahead
	jump   atomic.Int64 // by which it is set when it is read next
}

func newFakeWall(t *testing.T) *fakeWall {
	f := new(fakeWall)
	read := func() (int64, bool) {
		by := f.jump.Swap(0)
		if by != 0 && f.jumped != nil {
			f.jumped()
		}
		return time.Now().UnixNano() + f.shift.Add(by), false
	}
	g, moved := shard.NewGroupFake(read, shard.Config{Shards: 1})
	f.Service, f.moved = newService(&engine{group: g, clock: Realtime}, 0), moved
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func (f *fakeWall) set(by time.Duration) {
	f.shift.Add(int64(by))
	f.moved()
}

// A sleep whose clock is set back while it spins sleeps again, rather than spin for
// all that time, or end before its own.
func TestClockSpinSetBack(t *testing.T) {
	f := newFakeWall(t)
	for range 20 {
		now, _ := f.e.group.Now()
		end := now + 1000 // The least margin is more: it spins at once.
		done := make(chan bool)
		go func() {
			st := shard.Timer{Kind: shard.Sleep, Deadline: end}
			// The next reading finds the clock set back.
			f.jump.Store(-int64(time.Hour))
			over := f.sleepSpinning(nil, nil, &st, now, "Sleep") == sleepOver
			at, _ := f.e.group.Now()
			done <- over && at >= end
		}()
		for limit := time.Now().Add(time.Minute); f.Stats().Pending == 0; runtime.Gosched() {
			select {
			case <-done:
				t.Fatal("it has ended while the clock was set back")
			default:
			}
			if time.Now().After(limit) {
				t.Fatal("it does not sleep")
			}
		}
		f.set(time.Hour)
		select {
		case ok := <-done:
			if !ok {
				t.Error("it has ended before its time")
			}
		case <-time.After(time.Minute):
			t.Fatal("it does not end when its time has come")
		}
	}
}

// A sleep that finds its service closed when it is to sleep again has begun before
// that: it ends.
func TestClockSpinClosed(t *testing.T) {
	f := newFakeWall(t)
	now, _ := f.e.group.Now()
	st := shard.Timer{Kind: shard.Sleep, Deadline: now + 1000}
	f.jump.Store(-int64(time.Hour))
	f.jumped = func() { _ = f.Close() }
	if e := f.sleepSpinning(nil, nil, &st, now, "Sleep"); e != sleepClosed {
		t.Errorf("the sleep has ended as %d, want %d", e, sleepClosed)
	}
}

// Nothing of a queue on a clock that can go back is in its wheel, which cannot.
func TestClockQueueHeap(t *testing.T) {
	f := newFakeWall(t)
	for _, s := range []*Service{f.WithSlack(AutoSlack), f.WithSlack(time.Second)} {
		delivered := make(chan int, 1000)
		q := NewQueue(s, func(batch []Expired[int]) {
			for _, x := range batch {
				delivered <- x.Value
			}
		})
		for k := range 500 {
			q.Add(time.Hour+time.Duration(k)*time.Second, k)
		}
		for _, s := range q.shards {
			s.lock()
			if s.wheel.Len() != 0 {
				t.Errorf("%d values in the wheel", s.wheel.Len())
			}
			s.unlock()
		}
		f.set(2 * time.Hour)
		for range 500 {
			select {
			case <-delivered:
			case <-time.After(time.Minute):
				t.Fatal("a value is not delivered")
			}
		}
		f.set(-2 * time.Hour)
		q.Add(time.Millisecond, 0)
		select {
		case <-delivered:
		case <-time.After(time.Minute):
			t.Fatal("a value is not delivered, now that the clock has been set back")
		}
	}
}

// A deadline is a time of the wall clock, whatever its monotonic reading says: of a
// clock that has been set back it is so much farther away.
func TestClockWallDeadline(t *testing.T) {
	f := newFakeWall(t)
	f.set(-time.Hour)
	at := time.Now().Add(time.Minute)
	fired := make(chan string, 8)
	f.AfterFuncAt(at, func() { fired <- "AfterFuncAt" })
	ctx, cancel := f.WithDeadline(context.Background(), at)
	defer cancel()
	context.AfterFunc(ctx, func() { fired <- "WithDeadline" })
	NewQueue(f.Service, func([]Expired[int]) { fired <- "Queue" }).AddAt(at, 1)
	go func() {
		f.SleepUntil(at)
		fired <- "SleepUntil"
	}()
	const n = 4
	for limit := time.Now().Add(time.Minute); f.Stats().Pending < n; runtime.Gosched() {
		if time.Now().After(limit) {
			t.Fatalf("%d timers pending, want %d", f.Stats().Pending, n)
		}
	}
	f.set(30 * time.Minute)
	time.Sleep(20 * time.Millisecond)
	if len(fired) != 0 {
		t.Fatalf("%s: half an hour early", <-fired)
	}
	f.set(32 * time.Minute)
	for range n {
		select {
		case <-fired:
		case <-time.After(time.Minute):
			t.Fatal("a deadline that has passed has not fired")
		}
	}
}
