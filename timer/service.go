package timer

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/detent-go/detent/internal/shard"
)

// AutoSlack, given to [Service.WithSlack], asks for the automatic slack: a
// thousandth of each timer's duration.
const AutoSlack time.Duration = -1

// CallbackMode says how the callbacks of [AfterFunc] timers run.
type CallbackMode int

const (
	// Concurrent callbacks run as if each in its own goroutine: one that
	// blocks delays no other by more than a few milliseconds, or log2(n)
	// times as much where n of them block at once; or by 10 ms where all before
	// it have been short. This is the default. It costs a goroutine for each
	// burst of long callbacks, not for each callback.
	Concurrent CallbackMode = iota

	// Inline callbacks run one after another on the goroutine that wakes for
	// the timers of a P, and nothing looks after them: a callback that blocks
	// or takes long holds up the other timers of its P, sleepers and channels
	// too: one that waits for such a timer may wait for ever. It is for callbacks that take microseconds, and saves keeping
	// account of them.
	Inline
)

// Options are the settings of a [Service]. The zero value holds the defaults.
type Options struct {
	// Slack is how much later than its deadline a timer may fire for the
	// service's sake, on top of what the machine is late: timers that may
	// fire together share a wake-up, and those that may be 66 microseconds
	// late or more cost the same however many there are.
	//
	// The default, nil, is automatic: a thousandth of each timer's duration.
	// A pointer to 0 makes every timer exact: it then costs up to a system
	// call, and time that grows with the logarithm of the number of pending
	// timers. Not negative.
	Slack *time.Duration

	// Shards is the number of separate sets of timers, each with its own
	// lock. The default, 0, is GOMAXPROCS at the time of [New], so that Ps do
	// not wait for each other. Each shard takes about 30 KB. Not negative.
	Shards int

	// Callbacks says how callbacks run. The default is [Concurrent].
	Callbacks CallbackMode

	// Clock is what durations and deadlines are counted on. The default is
	// [Monotonic].
	Clock Clock

	// OnClockSet, for a [Realtime] service, is called after the wall clock has been
	// set, with by how much: less than 0, if it has been set back. That the clock is
	// slewed does not count. It is called on a goroutine of its own, for one set at a
	// time; what comes together meanwhile is added up. It is not called before the
	// service has had its first timer, and not after Close, but for a call that is
	// about to begin.
	//
	// On Linux it is told of steps of a microsecond and more, at once, and not of the
	// system having been suspended. Elsewhere, and in a build with the tag
	// detent_portable, it is told of steps of 10 milliseconds and more (more by a
	// thousandth of the time for which no timer was pending), within a second and
	// only while timers are pending; and a suspended system's monotonic clock may
	// have stood still, which looks like a set. The default is nil.
	OnClockSet func(delta time.Duration)

	// Blame has [Stats].Blame tell the kernel's part of lateness from that of the
	// Go scheduler, on Linux. It costs an OS thread for the service, which waits
	// for the same deadlines as the Go scheduler does and notes when the kernel
	// wakes it: some 10 microseconds of CPU time for each precise wake-up, of
	// which it looks at no more than a thousand a second. The default is not to
	// tell them apart.
	Blame bool
}

// mostSlack bounds how far a great slack makes a timer's deadline be rounded up.
const mostSlack = 30 * time.Second

// Service is a set of timers with settings of its own. Its methods are the
// functions of this package, and are safe for concurrent use.
//
// A Service starts no goroutine before its first timer needs one, and does
// nothing while no timer is due.
type Service struct {
	e      *engine
	auto   bool    // the slack is a thousandth of each timer's duration
	spin   bool    // Sleep spins at its end
	grid   uint8   // the slack's, where it is not
	places []place // one for each shard
}

// engine is what a Service and its views share.
type engine struct {
	group   *shard.Group
	clock   Clock // of no account where the group is a manual one
	forAll  bool  // the default service's, which is never closed
	spinner shard.Spinner

	followers followers // of a Realtime service
}

// place says where a timer lives, and what it is. Timers refer to a place of
// their service, one for each shard; a timer made in a synctest bubble has a
// place to itself, and so has one with a channel.
type place struct {
	shard  *shard.Shard
	svc    *Service
	bubble *bubbled

	c      chan time.Time // constant; nil for a callback
	hidden *hidden        // of package shard's sweeps
}

// New returns a service with the given options; nil stands for the defaults. It
// starts nothing. The only errors are those of options out of range, and of a clock
// that the system or the build does not have: then errors.Is finds
// [errors.ErrUnsupported].
func New(o *Options) (*Service, error) {
	if o == nil {
		o = &Options{}
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	e := &engine{clock: o.Clock}
	if err := e.open(o); err != nil {
		return nil, err
	}
	if o.Slack == nil {
		return newService(e, AutoSlack), nil
	}
	return newService(e, *o.Slack), nil
}

// check returns an error if an option is out of range.
func (o *Options) check() error {
	switch {
	case o.Shards < 0:
		return fmt.Errorf("timer: Options.Shards is %d, want 0 or more", o.Shards)
	case o.Slack != nil && *o.Slack < 0:
		return fmt.Errorf("timer: Options.Slack is %v, want 0 or more, or nil", *o.Slack)
	case o.Callbacks != Concurrent && o.Callbacks != Inline:
		return fmt.Errorf("timer: Options.Callbacks is %d, want Concurrent or Inline", o.Callbacks)
	case o.Clock < Monotonic || o.Clock > Realtime:
		return fmt.Errorf("timer: Options.Clock is %v, want Monotonic, Boottime or Realtime", o.Clock)
	case o.OnClockSet != nil && o.Clock != Realtime:
		return fmt.Errorf("timer: Options.OnClockSet with the clock %v, which nobody sets", o.Clock)
	}
	return nil
}

func newService(e *engine, slack time.Duration) *Service {
	s := &Service{e: e, auto: slack == AutoSlack}
	if !s.auto {
		s.grid = shard.Grid(int64(min(slack, mostSlack)))
	}
	shards := e.group.Shards()
	s.places = make([]place, len(shards))
	for i, sh := range shards {
		s.places[i] = place{shard: sh, svc: s}
	}
	return s
}

// std makes the default service.
var std = sync.OnceValue(func() *Service {
	return newService(&engine{group: shard.NewGroup(shard.Config{}), forAll: true}, AutoSlack)
})

// Default returns the service behind the functions of this package, with the
// default options. It cannot be closed.
func Default() *Service { return std() }

// WithSlack returns a service that shares the timers, goroutines and
// statistics of s, and is closed with it, but gives its timers another slack: 0
// for exact ones, [AutoSlack] for a thousandth of the duration. A timer keeps
// the slack that it was made with when it is reset.
//
// It allocates a little for each shard: make it once and keep it.
//
//	var precise = timer.Default().WithSlack(0)
//	...
//	precise.Sleep(20 * time.Millisecond)
//
// It panics if slack is negative and not AutoSlack.
func (s *Service) WithSlack(slack time.Duration) *Service {
	if slack < 0 && slack != AutoSlack {
		panic("timer: WithSlack called with a negative slack")
	}
	v := newService(s.e, slack)
	v.spin = s.spin
	return v
}

// Close ends the service: its pending timers and tickers never fire, blocked
// Sleeps return, and its goroutines and files are released. A callback that is
// running runs on. Stopping a timer afterwards does nothing and returns false;
// starting or resetting one, or sleeping, panics. Close returns an error if the
// service is closed already, and for the default service, which it leaves alone.
//
// A Sleep in a synctest bubble is left to the bubble's clock. A callback that
// has been taken up when Close is called may begin after it has returned.
func (s *Service) Close() error {
	if s.e.forAll {
		return errors.New("timer: the default service cannot be closed")
	}
	if !s.e.group.Close() {
		return errors.New("timer: service already closed")
	}
	return nil
}

// gridFor returns the grid of a timer of duration d.
func (s *Service) gridFor(d time.Duration) uint8 {
	if s.auto {
		return shard.AutoGrid(int64(d))
	}
	return s.grid
}

// schedule sets t's deadline and grid to those of a timer of duration d started
// now.
func (s *Service) schedule(t *shard.Timer, d time.Duration, now int64) {
	t.Grid = s.gridFor(d)
	t.Deadline = deadline(d, now)
}

// deadline returns the time d after now; now if d is negative; the end of time
// if d is too great.
func deadline(d time.Duration, now int64) int64 {
	if d < 0 {
		return now
	}
	if int64(d) > math.MaxInt64-now {
		return math.MaxInt64
	}
	return now + int64(d)
}

func closedPanic(op string) { panic("timer: " + op + " called on closed Service") }

// start starts t for duration d on the shard of the caller's P, for the method
// named op. It returns false inside a synctest bubble, where the caller is to
// use package time.
func (s *Service) start(t *shard.Timer, d time.Duration, op string) (*shard.Shard, shard.Handle, bool) {
	now, inBubble := s.e.group.Now()
	if inBubble {
		if s.e.group.Closed() {
			closedPanic(op)
		}
		return nil, 0, false
	}
	s.schedule(t, d, now)
	sh, h, ok := s.e.group.Start(t, now)
	if !ok {
		closedPanic(op)
	}
	return sh, h, true
}
