package timer

import (
	"context"
	"time"

	"github.com/detent-go/detent/internal/shard"
)

// Manual is a [Service] on virtual time, for tests: time stands still until
// [Manual.Advance] moves it on, which fires what is due on the way. So a year
// passes in milliseconds, and nothing in a test depends on how fast the machine
// is. Code under test takes a *Service: [Default] in the program, the Service of
// a Manual in its test. It asks the service for the time too, by [Service.Now].
//
// Everything that a Service does works on virtual time, by the same engine:
// callbacks, channels, tickers, sleeps, contexts, a [Queue].
//
// # Callbacks
//
// Callbacks run on the goroutine that advances the time, one after another,
// whatever [Options].Callbacks says. While one runs, the clock stands at its
// time. When Advance returns, every callback that was due has returned: a test
// sees what they have done, and also that nothing has been done. In return a
// callback must wait neither for the clock to move on, as in a Sleep, nor for the
// goroutine that advances it; one that would starts a goroutine instead. A
// callback may end the goroutine, as t.FailNow does, and its panics go up through
// Advance.
//
// # Goroutines
//
// What Advance wakes are goroutines of their own: those that sleep, or that
// receive from a timer's channel or have been waiting for a context. They come to
// run some time after Advance has moved on. Three ways to know where they are:
//
//   - [Manual.AwaitPending] waits until as many timers are pending as should be,
//     before time is advanced: until the goroutine sleeps, say.
//   - [Manual.Settle] waits until all goroutines have come to wait for something,
//     and [Manual.Run] advances the time so that they do at each step.
//   - In a testing/synctest bubble a Manual works too, and synctest.Wait is a
//     Settle for the goroutines of the bubble alone.
//
// # Concurrency
//
// All methods can be called concurrently. Several goroutines can advance the
// time, and a callback can: each moves the clock on from where it stands, by its
// own steps, and never back.
type Manual struct {
	// Service is the service itself. Close it as any other, or do not: it holds
	// nothing but memory.
	*Service
	group   *shard.Group
	settler settler
}

// NewManual returns a service on virtual time that begins at start, whose
// monotonic reading is dropped. The errors are those of [New].
//
// Of the options, Slack and Shards stand for what they do there, but for their
// defaults: timers without a slack are exact, and there is one shard, so that the
// same calls have the same effects in each run. The others mean nothing on virtual
// time. The slack of [Service.WithSlack] holds as it does on a real clock: a timer
// with a slack fires later than its deadline.
func NewManual(start time.Time, o *Options) (*Manual, error) {
	if o == nil {
		o = &Options{}
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	slack := time.Duration(0)
	if o.Slack != nil {
		slack = *o.Slack
	}
	g := shard.NewGroup(shard.Config{
		Shards: max(o.Shards, 1),
		Manual: true,
		Epoch:  start.Round(0),
	})
	return &Manual{Service: newService(&engine{group: g}, slack), group: g}, nil
}

// Advance moves the clock on by d, and fires what is due until then in the order
// of deadlines; timers that this starts are part of it. At each the clock stands
// at its deadline, or as much later as the timer's slack makes it be. Advance(0)
// fires what is due now.
//
// The clock goes as far as 292 years after its start, and stops there; timers
// that are due later never fire. Whoever keeps starting timers that are due at
// once, a callback or another goroutine, keeps Advance from returning. Advance
// panics if d is negative. After Close it moves the clock and fires nothing.
func (m *Manual) Advance(d time.Duration) {
	if d < 0 {
		panic("timer: Advance called with a negative duration")
	}
	m.group.Advance(m.after(d))
}

// AdvanceTo is Advance to the time t. If the clock stands there or later, it fires
// what is due now.
func (m *Manual) AdvanceTo(t time.Time) { m.group.Advance(m.group.TimeOf(t)) }

// Run is Advance by d for code that sleeps in a loop, or receives from a ticker:
// before each step of the clock, and at the end, it calls Settle, so that
// goroutines that have been woken have come to wait again, for a later time
// perhaps. It returns false if one of these calls does, and does not advance any
// more then. It panics if d is negative.
func (m *Manual) Run(d time.Duration) bool {
	if d < 0 {
		panic("timer: Run called with a negative duration")
	}
	for to := m.after(d); ; {
		if !m.Settle() {
			return false
		}
		at, ok := m.group.NextLimit()
		if !ok || at > to {
			m.group.Advance(to)
			return m.Settle()
		}
		m.group.Advance(at)
	}
}

// after returns the time d after the present one.
func (m *Manual) after(d time.Duration) int64 {
	now, _ := m.group.Now()
	return deadline(d, now)
}

// Next returns the time at which a timer fires next, in the past if it is due
// already, or false if none ever does. It reckons with the timer's slack. A Queue
// with a handler has a timer for all of its values, which may fire at an earlier
// deadline of one that has been reset.
func (m *Manual) Next() (time.Time, bool) {
	at, ok := m.group.NextLimit()
	if !ok {
		return time.Time{}, false
	}
	return m.group.TimeAt(at), true
}

// AwaitPending waits until at least n timers are pending: timers, tickers, sleeps
// and contexts with a deadline, as [Stats].Pending counts them. It is for a test
// that has started a goroutine, and advances the clock when that has come to
// sleep:
//
//	go poll(clock.Service)
//	clock.AwaitPending(t.Context(), 1)
//	clock.Advance(time.Minute)
//
// It returns nil, or the cause of ctx if that is done before.
func (m *Manual) AwaitPending(ctx context.Context, n int) error {
	return m.group.AwaitPending(ctx, n)
}
