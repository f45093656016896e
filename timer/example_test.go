package timer_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/detent-go/detent/timer"
)

// The names of package time, and what they do there.
func Example() {
	expired := make(chan string, 1)
	timeout := timer.AfterFunc(time.Minute, func() { expired <- "timed out" })
	fmt.Println(timeout.Reset(2 * time.Minute)) // It was pending,
	fmt.Println(timeout.Stop())                 // and still is.
	fmt.Println(timeout.Reset(50 * time.Microsecond))
	fmt.Println(<-expired)

	t := timer.NewTimer(time.Millisecond)
	<-t.C

	ticks := timer.NewTicker(time.Millisecond)
	defer ticks.Stop()
	<-ticks.C
	<-ticks.C
	// Output:
	// true
	// true
	// false
	// timed out
}

// A service has options, statistics and an end of its own.
func ExampleNew() {
	slack := 10 * time.Millisecond // Timers share wake-ups.
	s, err := timer.New(&timer.Options{Slack: &slack, Callbacks: timer.Inline})
	if err != nil {
		fmt.Println(err)
		return
	}
	var calls sync.WaitGroup
	for range 100 {
		calls.Add(1)
		s.AfterFunc(time.Millisecond, calls.Done)
	}
	s.AfterFunc(time.Hour, func() {})
	calls.Wait()
	st := s.Stats()
	fmt.Println(st.Started, "started,", st.Fired, "fired,", st.Pending, "pending")
	fmt.Println(s.Close())
	// Output:
	// 101 started, 100 fired, 1 pending
	// <nil>
}

// A view of a service with another slack shares everything else with it.
func ExampleService_WithSlack() {
	exact := timer.Default().WithSlack(0)
	relaxed := timer.Default().WithSlack(time.Second)

	begin := time.Now()
	exact.Sleep(20 * time.Millisecond) // as precise as the machine is
	fmt.Println(time.Since(begin) >= 20*time.Millisecond)

	t := relaxed.AfterFunc(time.Minute, func() {}) // perhaps a second later, with others
	fmt.Println(t.Stop())
	// Output:
	// true
	// true
}

// Lateness is a histogram: quantiles, the greatest, the buckets.
func ExampleService_Stats() {
	s, err := timer.New(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	for range 10 {
		s.Sleep(100 * time.Microsecond)
	}
	late := s.Stats().Lateness
	fmt.Println(late.Count(), "sleeps;", late.Quantile(0.5) <= late.Quantile(0.99), late.Max() > 0)
	// Output: 10 sleeps; true true
}

// A deadline that several steps have in common.
func ExampleWithDeadline() {
	ctx, cancel := timer.WithDeadline(context.Background(), time.Now().Add(2*time.Millisecond))
	defer cancel()
	for step := 0; ctx.Err() == nil; step++ {
		timer.SleepContext(ctx, 100*time.Microsecond)
	}
	fmt.Println(ctx.Err())
	// Output: context deadline exceeded
}

// Absolute deadlines of timers: when the time is known already.
func ExampleAfterFuncAt() {
	received := time.Now() // of a request, say
	done := make(chan time.Duration)
	timer.AfterFuncAt(received.Add(5*time.Millisecond), func() { done <- time.Since(received) })
	fmt.Println(<-done >= 5*time.Millisecond)
	// Output: true
}
