package timer_test

import (
	"fmt"
	"sync"
	"time"

	"github.com/detent-go/detent/timer"
)

// Sessions that end when nothing has been heard of them for a while: a timer for
// each, pushed back by each message, without a closure or a goroutine for any.
func ExampleQueue() {
	type session struct {
		name  string
		timer timer.Handle
	}
	var over sync.WaitGroup
	timeouts := timer.NewQueue(nil, func(batch []timer.Expired[*session]) {
		for _, x := range batch {
			fmt.Println(x.Value.name, "timed out")
			over.Done()
		}
	})
	defer timeouts.Close()

	const idle = 20 * time.Millisecond
	quiet, busy := &session{name: "quiet"}, &session{name: "busy"}
	over.Add(1)
	quiet.timer = timeouts.Add(idle, quiet)
	busy.timer = timeouts.Add(time.Hour, busy)

	timeouts.Reset(busy.timer, time.Hour) // A message has come.
	over.Wait()

	fmt.Println("busy ended in time:", timeouts.Stop(busy.timer))
	// Output:
	// quiet timed out
	// busy ended in time: true
}

// An event loop that polls: the queue starts no goroutine, and everything
// happens in the loop's own.
func ExampleQueue_Poll() {
	retries := timer.NewQueue[string](nil, nil)
	defer retries.Close()
	retries.Add(2*time.Millisecond, "second")
	retries.Add(time.Millisecond, "first")

	var expired [64]timer.Expired[string]
	for retries.Len() > 0 {
		if at, ok := retries.Next(); ok {
			time.Sleep(time.Until(at)) // Or wait for what else may happen.
		}
		for _, x := range expired[:retries.Poll(expired[:])] {
			fmt.Println(x.Value)
		}
	}
	// Unordered output:
	// first
	// second
}

// A loop that handles many messages at a time knows what time it is.
func ExampleQueue_AddAt() {
	leases := timer.NewQueue(timer.Default().WithSlack(time.Second), func(batch []timer.Expired[int]) {
		fmt.Println(len(batch), "leases have ended")
	})
	defer leases.Close()

	now := time.Now()
	for lease := range 3 {
		leases.AddAt(now.Add(time.Minute), lease)
	}
	fmt.Println(leases.Len(), "leases")
	// Output: 3 leases
}
