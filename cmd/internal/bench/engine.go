package bench

import (
	"time"

	"github.com/detent-go/detent/timer"
)

// The sides of a comparison. Time and Detent are engines, each with worker
// processes of its own; the others are yardsticks that some rows are held
// against.
const (
	Time       = "time"
	Detent     = "detent"
	Nanosleep  = "nanosleep"
	Cyclictest = "cyclictest"
	Arithmetic = "arithmetic"
	Zero       = "zero" // what ought to be none
)

// engines are the sides in the order in which a round measures them.
var engines = []string{Time, Detent}

// handle is what both engines hand out for a started timer.
type handle interface {
	comparable
	Stop() bool
	Reset(d time.Duration) bool
}

type (
	timeHandle   = *time.Timer
	detentHandle = *timer.Timer
)

// engine is a source of timers under measurement. The measurements are
// generic in the handle, so that a million kept timers are a million plain
// pointers and no interface sits between the measured code and the timer.
type engine[T handle] interface {
	AfterFunc(d time.Duration, f func()) T
	Sleep(d time.Duration)
	// Exact is the same engine with timers that may not be late on purpose.
	Exact() engine[T]
	// Wakeups counts the times that the engine woke up by its own account;
	// false where the engine keeps no such count.
	Wakeups() (uint64, bool)
	// Lane is the engine on a thread of its own, or as k says, until end is called;
	// the same engine where there is no such thing.
	Lane(k laneKind) (lane engine[T], end func() error, err error)
}

// timeEngine is package time, which knows exact timers only and does not
// count its wakeups.
type timeEngine struct{}

func (timeEngine) AfterFunc(d time.Duration, f func()) timeHandle { return time.AfterFunc(d, f) }
func (timeEngine) Sleep(d time.Duration)                          { time.Sleep(d) }
func (e timeEngine) Exact() engine[timeHandle]                    { return e }
func (timeEngine) Wakeups() (uint64, bool)                        { return 0, false }
func (e timeEngine) Lane(k laneKind) (engine[timeHandle], func() error, error) {
	_, err := k.options()
	return e, func() error { return nil }, err
}

// detentEngine is what a user of package timer's functions gets: the default
// service with automatic slack.
type detentEngine struct{}

func (detentEngine) AfterFunc(d time.Duration, f func()) detentHandle { return timer.AfterFunc(d, f) }
func (detentEngine) Sleep(d time.Duration)                            { timer.Sleep(d) }
func (detentEngine) Wakeups() (uint64, bool)                          { return timer.Default().Stats().Wakeups, true }
func (detentEngine) Exact() engine[detentHandle] {
	return detentExact{timer.Default().WithSlack(0)}
}

func (detentEngine) Lane(k laneKind) (engine[detentHandle], func() error, error) {
	o, err := k.options()
	if err != nil {
		return nil, nil, err
	}
	if k == laneNone {
		return detentExact{timer.Default().WithSpin()}, func() error { return nil }, nil
	}
	s, err := timer.NewLane(o)
	if err != nil {
		return nil, nil, err
	}
	return detentExact{s}, s.Close, nil
}

// detentExact is the view of the default service without slack.
type detentExact struct{ s *timer.Service }

func (e detentExact) AfterFunc(d time.Duration, f func()) detentHandle { return e.s.AfterFunc(d, f) }
func (e detentExact) Sleep(d time.Duration)                            { e.s.Sleep(d) }
func (e detentExact) Exact() engine[detentHandle]                      { return e }
func (e detentExact) Lane(k laneKind) (engine[detentHandle], func() error, error) {
	return detentEngine{}.Lane(k)
}
func (e detentExact) Wakeups() (uint64, bool) { return e.s.Stats().Wakeups, true }

var epoch = time.Now()

// now is CLOCK_MONOTONIC in nanoseconds since the process started.
func now() int64 { return int64(time.Since(epoch)) }

// nop is the callback of timers that are there to be started and stopped.
func nop() {}
