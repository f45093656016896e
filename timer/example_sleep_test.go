package timer_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/detent-go/detent/timer"
)

// A loop that sleeps until one deadline after the other does not drift: after a
// hundred rounds it is as late as one wake-up, not as a hundred.
func ExampleSleepUntil() {
	const period = 500 * time.Microsecond
	start := time.Now()
	next := start
	for range 100 {
		next = next.Add(period)
		timer.SleepUntil(next)
	}
	fmt.Println("rounds:", int(next.Sub(start)/period))
	fmt.Println("early:", time.Now().Before(next))
	// Output:
	// rounds: 100
	// early: false
}

// A loop that waits between its rounds, and ends at once when it is to.
func ExampleSleepContext() {
	ctx, stop := context.WithCancelCause(context.Background())
	timer.AfterFunc(20*time.Millisecond, func() { stop(errors.New("stopping")) })

	var err error
	for interval := time.Millisecond; err == nil; interval *= 100 {
		err = timer.SleepContext(ctx, interval)
	}
	fmt.Println(err)
	// Output:
	// stopping
}

// A connection's deadline, counted from the moment at which a message came
// rather than from that at which the program has come to it.
func ExampleTimer_ResetAt() {
	const idle = time.Minute
	timeout := timer.AfterFunc(idle, func() { fmt.Println("connection lost") })
	received := time.Now()
	// Much is done here.
	pending := timeout.ResetAt(received.Add(idle))
	fmt.Println(pending, timeout.Stop())
	// Output:
	// true true
}
