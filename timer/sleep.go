package timer

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/detent-go/detent/internal/shard"
)

// ErrClosed is what a sleep with a context returns that has ended early because
// its [Service] was closed.
var ErrClosed = errors.New("timer: service closed")

// sleeper is what a sleeping goroutine waits on.
type sleeper struct{ wake chan struct{} }

// Fire wakes the goroutine. The channel has room: a sleeper is woken once a
// sleep.
func (s *sleeper) Fire(*shard.Shard, shard.Handle) { s.wake <- struct{}{} }

func newSleeper() *sleeper { return &sleeper{make(chan struct{}, 1)} }

var sleepers = sync.Pool{New: func() any { return newSleeper() }}

// Sleep pauses the current goroutine for at least the duration d. A negative or
// zero duration causes Sleep to return immediately. Sleep returns early when the
// service is closed.
func (s *Service) Sleep(d time.Duration) {
	if d <= 0 {
		return
	}
	now, inBubble := s.e.group.Now()
	if inBubble {
		s.sleepBubbled(nil, nil, d, "Sleep")
		return
	}
	st := shard.Timer{Kind: shard.Sleep}
	s.schedule(&st, d, now)
	s.sleep(nil, nil, &st, now, "Sleep")
}

// SleepUntil pauses the current goroutine until the time t has come. If it has
// passed, SleepUntil returns immediately. It returns early when the service is
// closed.
//
// A loop that sleeps until one deadline after the other keeps its schedule: how
// long the work takes, and how late a wake-up is, does not add up, as it does
// with [Service.Sleep].
//
//	for next := time.Now(); ; {
//		work()
//		next = next.Add(period)
//		timer.SleepUntil(next)
//	}
//
// A deadline is a point of the monotonic clock, unless the service goes by another
// [Clock]. On the monotonic one a time with a monotonic reading, as time.Now returns
// it and Add keeps it, is such a point to the nanosecond. A time without, which was
// parsed, decoded, made by [time.Date], or has been through UTC, In or Round, is
// taken to be as far away as the wall clock says at the time of the call: if the wall
// clock is set later on, the deadline stays where it was. For what follows the wall
// clock see [Realtime], and [TickOptions].Aligned.
func (s *Service) SleepUntil(t time.Time) {
	at := s.timeOf(t)
	now, inBubble := s.e.group.Now()
	if inBubble {
		s.sleepBubbled(nil, nil, time.Until(t), "SleepUntil")
		return
	}
	if at <= now {
		return
	}
	st := shard.Timer{Kind: shard.Sleep}
	s.scheduleAt(&st, at, now)
	s.sleep(nil, nil, &st, now, "SleepUntil")
}

// SleepContext is Sleep for as long as ctx is not done. It returns nil when the
// duration d has passed; [context.Cause] of ctx when ctx is done before; and
// [ErrClosed] when the service is closed before. If more than one has happened
// when the goroutine comes to run, it returns any of these, but never nil before d
// has passed.
//
// A context that is done already is looked at first, whatever d is. Otherwise, if
// d is zero or negative, SleepContext returns nil immediately. So a loop around it
// ends when ctx is done:
//
//	for timer.SleepContext(ctx, interval) == nil {
//		poll()
//	}
//
// It allocates nothing, apart from the channel of a context that is asked for it
// for the first time, and panics if ctx is nil or the service is closed.
func (s *Service) SleepContext(ctx context.Context, d time.Duration) error {
	done, err := doneOf(ctx, "SleepContext")
	if err != nil || d <= 0 {
		return err
	}
	now, inBubble := s.e.group.Now()
	if inBubble {
		return endOf(ctx, s.sleepBubbled(done, nil, d, "SleepContext"))
	}
	st := shard.Timer{Kind: shard.Sleep}
	s.schedule(&st, d, now)
	return endOf(ctx, s.sleep(done, nil, &st, now, "SleepContext"))
}

// SleepUntilContext is SleepUntil for as long as ctx is not done. Its results are
// those of SleepContext.
func (s *Service) SleepUntilContext(ctx context.Context, t time.Time) error {
	done, err := doneOf(ctx, "SleepUntilContext")
	if err != nil {
		return err
	}
	at := s.timeOf(t)
	now, inBubble := s.e.group.Now()
	if inBubble {
		return endOf(ctx, s.sleepBubbled(done, nil, time.Until(t), "SleepUntilContext"))
	}
	if at <= now {
		return nil
	}
	st := shard.Timer{Kind: shard.Sleep}
	s.scheduleAt(&st, at, now)
	return endOf(ctx, s.sleep(done, nil, &st, now, "SleepUntilContext"))
}

// doneOf returns ctx's Done channel; or its cause, if it is done already.
func doneOf(ctx context.Context, op string) (<-chan struct{}, error) {
	if ctx == nil {
		panic("timer: " + op + " called with a nil Context")
	}
	if ctx.Err() != nil {
		return nil, causeOf(ctx)
	}
	return ctx.Done(), nil
}

// causeOf returns the cause of a context that is done.
func causeOf(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return context.Canceled // The context breaks the rules.
}

// sleepEnd is how a sleep has ended.
type sleepEnd uint8

const (
	sleepOver     sleepEnd = iota // its time has come
	sleepCanceled                 // its context is done
	sleepClosed                   // the service has been closed
	sleepChanged                  // what it was for has changed
)

// endOf returns the result of a sleep with a context.
func endOf(ctx context.Context, e sleepEnd) error {
	switch e {
	case sleepCanceled:
		return causeOf(ctx)
	case sleepClosed:
		return ErrClosed
	default:
		return nil
	}
}

// orEnd is the name of a method whose sleeps end, rather than panic, if the service
// is closed when they begin.
const orEnd = ""

// sleep sleeps until st is due, or done or changed is closed, for the method named
// op. The current time is now.
func (s *Service) sleep(done, changed <-chan struct{}, st *shard.Timer, now int64, op string) sleepEnd {
	if s.spin && !s.e.group.Manual() {
		return s.sleepSpinning(done, changed, st, now, op)
	}
	return s.block(done, changed, st, now, op)
}

// refused is the end of a sleep that finds the service closed.
func refused(op string) sleepEnd {
	if op != orEnd {
		closedPanic(op)
	}
	return sleepClosed
}

// block is sleep without spinning.
func (s *Service) block(done, changed <-chan struct{}, st *shard.Timer, now int64, op string) sleepEnd {
	// Not in a bubble, unless time is virtual: a channel made there must not get
	// into the pool.
	pooled := !s.e.group.Manual()
	var sl *sleeper
	if pooled {
		sl = sleepers.Get().(*sleeper)
	} else {
		sl = newSleeper()
	}
	st.Target = sl
	sh, h, ok := s.e.group.Start(st, now)
	if !ok {
		return refused(op)
	}
	end := sleepOver
	if done == nil && changed == nil {
		<-sl.wake
	} else {
		select {
		case <-sl.wake:
		case <-done:
			end = sleepCanceled
		case <-changed:
			end = sleepChanged
		}
		if end != sleepOver && !sh.Stop(h) {
			// It has been fired, or is just being fired, by its deadline or by
			// Close.
			<-sl.wake
			end = sleepOver
		}
	}
	if pooled {
		sleepers.Put(sl)
	}
	if end != sleepOver {
		return end
	}
	if s.e.group.Closed() {
		if now, _ := s.e.group.Now(); now < st.Deadline {
			return sleepClosed
		}
	}
	return sleepOver
}

// sleepBubbled is sleep for a duration, inside a synctest bubble.
func (s *Service) sleepBubbled(done, changed <-chan struct{}, d time.Duration, op string) sleepEnd {
	switch {
	case d <= 0:
		return sleepOver
	case s.e.group.Closed():
		return refused(op)
	case done == nil && changed == nil:
		time.Sleep(d)
		return sleepOver
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return sleepOver
	case <-done:
		return sleepCanceled
	case <-changed:
		return sleepChanged
	}
}
