package engine

import (
	"math"
	"time"
)

// Core is a timer engine proper. Its methods are safe for concurrent use.
type Core interface {
	// Start arms a timer that is due d from now, at once if d is not positive;
	// and then, if period is positive, every period after that, where a period
	// that has gone by unnoticed is skipped.
	//
	// When the timer is due the engine calls f(arg, seq), wherever it is that
	// it looks after timers: f must be quick and must not block. A nil f asks
	// for a goroutine instead: arg is then a func(), which may do anything.
	//
	// It panics once the engine is closed.
	Start(d, period time.Duration, f Func, arg any, seq uintptr) Node

	// Counters returns what the engine has done so far.
	Counters() Counters

	// Close ends the engine: what is armed is never due, and the engine's
	// goroutines and threads end. Functions that run already run on.
	// It may be called once.
	Close()
}

// Func is what an engine calls when a timer is due. The number was given when
// the timer was armed, so that a call that comes after the timer has been armed
// anew is known for what it is.
type Func func(arg any, seq uintptr)

// Node is one timer of a Core. Its methods are safe for concurrent use, also in
// the timer's own function.
type Node interface {
	Timer

	// Rearm arms the timer anew, whatever it does now, and reports whether it
	// was armed. Reset(d) is Rearm(d, 0, 0).
	Rearm(d, period time.Duration, seq uintptr) bool
}

// Counters are what an engine has done and has. A count that an engine has no
// use for is 0.
type Counters struct {
	Pending uint64 // timers armed now
	Fired   uint64 // calls of functions
	Wakeups uint64 // times the engine was woken, or woke itself, to look at its timers

	FutexWaits uint64 // futex(2) calls that sleep
	FutexWakes uint64 // futex(2) calls that wake
	EpollWaits uint64 // epoll_wait(2) calls
	// EpollSleeps are those of them that found nothing, and slept.
	EpollSleeps uint64
	Breaks      uint64 // writes to the pipe that ends an epoll_wait early
	Nanosleeps  uint64 // nanosleep(2) calls

	Steals uint64 // tasks and timers that one P took over from another

	// Threads is how many threads the engine holds now: those asleep in the
	// kernel for it, and those that run its own loops.
	Threads int
}

// Sleeps returns how many times a thread of the engine's went to sleep in the
// kernel: a context switch each, at the least.
func (c Counters) Sleeps() uint64 { return c.FutexWaits + c.EpollSleeps + c.Nanosleeps }

// Infinite is a deadline that never comes.
const Infinite = math.MaxInt64

// started is the zero of the engines' clock.
var started = time.Now()

// Now returns the time of the engines' clock in nanoseconds: CLOCK_MONOTONIC on
// Linux, counted from the start of the program.
func Now() int64 { return int64(time.Since(started)) }

// Deadline returns the time d from now: now if d is negative, and [Infinite] if
// it is too great.
func Deadline(d time.Duration) int64 {
	now := Now()
	if d <= 0 {
		return now
	}
	if at := now + int64(d); at > 0 {
		return at
	}
	return Infinite
}

// NextPeriod returns when a periodic timer is due again that was due at when,
// once it is now: on the schedule that it was started with, and in the future.
// A timer that is looked at late has lost the periods in between.
func NextPeriod(when, period, now int64) int64 {
	when += period * (1 + (now-when)/period)
	if when < 0 {
		return Infinite
	}
	return when
}
