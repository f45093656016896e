package timer

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/detent-go/detent/internal/shard"
)

// MissedTicks says what becomes of the ticks of an [Interval] that nobody was there
// to take, because the work for an earlier one took longer than the period. A tick
// that is taken late is never lost by that: it is about those behind it.
type MissedTicks int

const (
	// Skip passes over the ticks that have been missed: after the one that is
	// taken late comes the next that is still to come by the schedule. So it is
	// with a [Ticker]. With a period of 10 ms and 35 ms of work after the tick of
	// 10, that of 20 is taken at 45, and the next is that of 50.
	Skip MissedTicks = iota

	// Burst has the ticks that have been missed come one right after the other,
	// each with the time for which it was due, until the schedule is caught up with:
	// for work that has to be done a certain number of times. In the example those
	// of 20, 30 and 40 are taken from 45 on.
	Burst

	// Delay puts the schedule off: after one that is taken late the next comes a
	// period later, and so on from there. For work that needs a pause after it.
	// Late means by more than an eighth of the period, or 5 ms. In the example that
	// of 20 is taken at 45, and the next is one of 55.
	Delay
)

// TickOptions are the settings of an [Interval]. The zero value holds the defaults.
type TickOptions struct {
	// Missed says what becomes of ticks that have been missed. The default is
	// [Skip].
	Missed MissedTicks

	// Immediately has the first tick come at once instead of after a period.
	Immediately bool

	// Aligned has the ticks come at times of the wall clock: at multiples of the
	// period, counted as [time.Time.Truncate] does, in UTC. For a period of 15
	// seconds that is on the quarter of each minute; for an hour on the hour. A
	// period that divides a day has the same times every day, and in every time
	// zone whose offset from UTC is a multiple of it. Others walk through the day:
	// 7 hours, for example. Multiples of 24 hours are at midnight UTC, those of a
	// week on Monday. There is no way to follow the daylight saving time of a zone.
	//
	// No tick comes before its time by the wall clock. When the clock is set, the
	// ticks follow within a period, or a minute where that is less: a service that
	// is idle otherwise wakes once a minute for it. Those of a [Realtime] service
	// follow as soon as that knows. If the clock has been set
	// forward over the times of ticks, one comes, for the last of them, and the
	// others count as missed, even with [Burst]. If it has been set back, the ticks
	// come at the times that it shows again, but for the last one that came.
	//
	// Aligned ticks cannot have [Delay].
	Aligned bool

	// Offset moves aligned ticks: with a period of an hour and an offset of 5
	// minutes they come at 5 past. It may be negative.
	Offset time.Duration
}

// Ticked is one tick of an [Interval].
type Ticked struct {
	// At is the time for which the tick was due, by the schedule: how late it is
	// taken is time.Since(At). It has a monotonic reading, and the wall clock's as
	// of the start of the schedule; that of an aligned tick is a time of the wall
	// clock, without a monotonic reading.
	At time.Time

	// Missed is the number of ticks of the schedule between the tick that was taken
	// before and this one: passed over by [Skip], dropped when [Delay] put the
	// schedule off, or jumped over when the wall clock was set.
	Missed int64
}

// Interval is a ticker whose user takes the ticks, one by one, and so tells when it
// has come to them: what has been missed is dealt with as [TickOptions] say, and
// counted. Each tick has the exact time of the schedule, which does not drift. It
// must be made with [NewInterval] or [TickFunc].
//
// There are four ways to take ticks: in a loop by [Interval.Ticks], one at a time
// by [Interval.Wait], among other things by [Interval.C] and [Interval.Take] in a
// select, or by a function with [TickFunc].
//
// Nothing is pending while nobody waits, so an Interval need not be stopped, apart
// from one of TickFunc. Ticks are as late as the timers of its service: see
// [Service.WithSlack], and [Service.WithSpin] for Wait and Ticks. All methods are
// safe for concurrent use; each tick is taken once. Intervals made in a synctest
// bubble are on its time, and are for it alone; those made outside panic inside.
type Interval struct {
	svc     *Service
	bubbled bool
	base    time.Time    // of moments
	f       func(Ticked) // nil: the ticks are taken

	mu      sync.Mutex
	sched   schedule
	stopped bool
	calling bool          // f is being called
	changed chan struct{} // closed at Stop and Reset; nil until somebody waits
	t       *Timer        // calls look if there is an f; otherwise C's, nil until that is called
	armed   time.Duration // what C's timer is set to, as a moment, or notArmed
}

// notArmed is what has passed at any moment.
const notArmed = time.Duration(-1 << 63)

// NewInterval returns an [Interval] whose ticks come every d. It starts nothing; the
// schedule begins now. Options of nil stand for the defaults. NewInterval panics if
// d is not greater than zero, if options are out of range, or if the service is
// closed.
func (s *Service) NewInterval(d time.Duration, o *TickOptions) *Interval {
	return s.newInterval(d, nil, o, "NewInterval")
}

// TickFunc calls f for each tick, every d, until the returned [Interval] is stopped.
// f is called as the callbacks of [AfterFunc] are, but for an Interval never twice
// at a time: what comes due while it runs has been missed, and is dealt with as the
// options say. The Interval can be stopped and reset, also by f; there are no ticks
// to take from it. TickFunc panics if f is nil, and where NewInterval does.
func (s *Service) TickFunc(d time.Duration, f func(Ticked), o *TickOptions) *Interval {
	if f == nil {
		panic("timer: TickFunc called with a nil function")
	}
	iv := s.newInterval(d, f, o, "TickFunc")
	iv.mu.Lock()
	defer iv.mu.Unlock()
	now := iv.now()
	iv.t = &Timer{fire: iv.look}
	s.startFuncAt(iv.t, iv.deadline(now), "TickFunc")
	return iv
}

func (s *Service) newInterval(d time.Duration, f func(Ticked), o *TickOptions, op string) *Interval {
	if o == nil {
		o = &TickOptions{}
	}
	switch {
	case d <= 0:
		panic("non-positive interval for " + op)
	case o.Missed < Skip || o.Missed > Delay:
		panic("timer: TickOptions.Missed is none of Skip, Burst and Delay")
	case o.Aligned && o.Missed == Delay:
		panic("timer: TickOptions.Aligned does not go with Delay")
	case o.Offset != 0 && !o.Aligned:
		panic("timer: TickOptions.Offset is for Aligned")
	case s.e.group.Closed():
		closedPanic(op)
	}
	_, inBubble := s.e.group.Now()
	iv := &Interval{svc: s, bubbled: inBubble, base: s.Now(), f: f, armed: notArmed}
	if s.e.clock == Realtime && !inBubble {
		iv.base = time.Now() // with a monotonic reading
		s.e.followers.add(iv)
	}
	iv.sched = schedule{missed: o.Missed, aligned: o.Aligned, offset: o.Offset}
	iv.sched.begin(iv.now(), d, o.Immediately)
	return iv
}

// now returns the present moment.
func (iv *Interval) now() moment {
	if iv.svc.e.clock == Realtime && !iv.bubbled {
		return iv.steadyNow()
	}
	t := iv.svc.Now()
	return moment{mono: t.Sub(iv.base), wall: t.Round(0)}
}

// deadline returns when to look at the schedule.
func (iv *Interval) deadline(now moment) time.Time {
	d := iv.sched.wait(now)
	if iv.sched.aligned || iv.svc.e.clock == Realtime {
		return now.wall.Add(d)
	}
	return iv.base.Add(saturated(now.mono, d))
}

// inside panics, for the method named op, across the border of a synctest bubble.
func (iv *Interval) inside(op string) {
	if _, inBubble := iv.svc.e.group.Now(); inBubble == iv.bubbled {
		return
	}
	if iv.bubbled {
		panic("timer: " + op + " called outside of the synctest bubble that the Interval was made in")
	}
	panic("timer: " + op + " called in a synctest bubble on an Interval made outside")
}

// taken panics, for the method named op, if ticks are not for taking.
func (iv *Interval) taken(op string) {
	switch {
	case iv.svc == nil:
		panic("timer: " + op + " called on uninitialized Interval")
	case iv.f != nil:
		panic("timer: " + op + " called on an Interval of TickFunc")
	}
	iv.inside(op)
}

// Take returns the tick that has come, and true; or false if the next one is still
// to come, or the interval is stopped or its service closed. It does not wait.
func (iv *Interval) Take() (Ticked, bool) {
	iv.taken("Take")
	if iv.svc.e.group.Closed() {
		return Ticked{}, false
	}
	iv.mu.Lock()
	defer iv.mu.Unlock()
	return iv.takeLocked(iv.now())
}

func (iv *Interval) takeLocked(now moment) (Ticked, bool) {
	if iv.stopped || !iv.sched.due(now) {
		return Ticked{}, false
	}
	t := iv.sched.take(now)
	if !iv.sched.aligned {
		t.At = iv.base.Add(time.Duration(iv.sched.taken))
	}
	return t, true
}

// C returns a channel on which something can be received when a tick has come, for
// select; it is taken then by [Interval.Take]:
//
//	for {
//		select {
//		case <-iv.C():
//			if tick, ok := iv.Take(); ok {
//				work(tick)
//			}
//		case <-quit:
//			return
//		}
//	}
//
// The call has the channel tell of the tick that comes next: call it in each round,
// as select does by itself. It may be told once too often, if somebody else has
// taken the tick, or an aligned interval has to look at the wall clock. The channel
// tells one goroutine of a tick, and of the next when C is called again: where several
// wait for ticks, [Interval.Wait] is for them. C panics if the service is closed.
func (iv *Interval) C() <-chan time.Time {
	iv.taken("C")
	iv.mu.Lock()
	defer iv.mu.Unlock()
	now := iv.now()
	if iv.stopped {
		if iv.t == nil {
			return nil
		}
		return iv.t.C
	}
	at := iv.deadline(now)
	next := saturated(now.mono, iv.sched.wait(now))
	switch {
	case iv.t == nil:
		iv.t = iv.svc.newTimerAt(at, "C")
	case iv.armed > now.mono && iv.armed <= next && iv.t.tells():
		return iv.t.C
	default:
		if !iv.t.setAt(at) {
			closedPanic("C")
		}
	}
	iv.armed = next
	return iv.t.C
}

// Wait waits for the next tick and takes it. It returns [context.Cause] of ctx if
// ctx is done before, also where a tick has come already, and [ErrClosed] if the
// service is closed. While the interval is stopped no tick comes.
func (iv *Interval) Wait(ctx context.Context) (Ticked, error) {
	iv.taken("Wait")
	done, err := doneOf(ctx, "Wait")
	for err == nil {
		if iv.svc.e.group.Closed() {
			return Ticked{}, ErrClosed
		}
		iv.mu.Lock()
		now := iv.now()
		t, ok := iv.takeLocked(now)
		if ok {
			iv.mu.Unlock()
			return t, nil
		}
		if iv.changed == nil {
			iv.changed = make(chan struct{})
		}
		changed, at, stopped := iv.changed, iv.deadline(now), iv.stopped
		iv.mu.Unlock()
		err = endOf(ctx, iv.sleep(done, changed, at, stopped))
	}
	return Ticked{}, err
}

// sleep sleeps until the given time; or, while the interval is stopped, until that
// changes.
func (iv *Interval) sleep(done, changed <-chan struct{}, at time.Time, stopped bool) sleepEnd {
	s := iv.svc
	if iv.bubbled {
		d := time.Until(at)
		if stopped {
			d = 1<<63 - 1
		}
		return s.sleepBubbled(done, changed, d, orEnd)
	}
	ns := s.timeOf(at)
	now, _ := s.e.group.Now()
	st := shard.Timer{Kind: shard.Sleep}
	if stopped {
		s.schedule(&st, 1<<63-1, now)
	} else {
		s.scheduleAt(&st, ns, now)
	}
	return s.sleep(done, changed, &st, now, orEnd)
}

// Ticks returns the ticks in order, as they come, for a loop:
//
//	for tick := range iv.Ticks(ctx) {
//		work(tick)
//	}
//
// The loop ends when ctx is done or the service closed.
func (iv *Interval) Ticks(ctx context.Context) iter.Seq[Ticked] {
	return func(yield func(Ticked) bool) {
		for {
			t, err := iv.Wait(ctx)
			if err != nil || !yield(t) {
				return
			}
		}
	}
}

// look is called when there may be a tick to call f for.
func (iv *Interval) look() {
	iv.mu.Lock()
	if iv.stopped || iv.calling {
		iv.mu.Unlock()
		return
	}
	t, ok := iv.takeLocked(iv.now())
	if !ok {
		iv.armLocked()
		iv.mu.Unlock()
		return
	}
	iv.calling = true
	iv.mu.Unlock()
	defer func() { // f may end its goroutine.
		iv.mu.Lock()
		iv.calling = false
		iv.armLocked()
		iv.mu.Unlock()
	}()
	iv.f(t)
}

// armLocked sets the timer that calls look. If the service has been closed there is
// none any more.
func (iv *Interval) armLocked() {
	if !iv.stopped {
		iv.t.setAt(iv.deadline(iv.now()))
	}
}

// Stop ends the ticks: none can be taken, and f is not called any more, though it
// may be running. After [Interval.Reset] there are ticks again.
func (iv *Interval) Stop() {
	if iv.svc == nil {
		panic("timer: Stop called on uninitialized Interval")
	}
	iv.mu.Lock()
	defer iv.mu.Unlock()
	iv.stopped = true
	iv.changeLocked()
}

// Reset begins the schedule anew with the period d, from now on. What had come
// before and was not taken is gone, and does not count as missed. Reset panics if d
// is not greater than zero, or the service is closed.
func (iv *Interval) Reset(d time.Duration) {
	switch {
	case d <= 0:
		panic("non-positive interval for Interval.Reset")
	case iv.svc == nil:
		panic("timer: Reset called on uninitialized Interval")
	case iv.svc.e.group.Closed():
		closedPanic("Reset")
	}
	iv.inside("Reset")
	iv.mu.Lock()
	defer iv.mu.Unlock()
	iv.stopped = false
	iv.sched.begin(iv.now(), d, false)
	iv.changeLocked()
	if iv.f != nil && !iv.calling {
		iv.armLocked()
	}
}

// changeLocked tells those who wait that the schedule has changed.
func (iv *Interval) changeLocked() {
	if iv.t != nil {
		iv.t.Stop() // It takes back what C may have to tell.
		iv.armed = notArmed
	}
	if iv.changed != nil {
		close(iv.changed)
		iv.changed = nil
	}
}
