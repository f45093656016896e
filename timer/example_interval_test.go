package timer_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/detent-go/detent/timer"
)

// A loop with a round every two milliseconds. Rounds that take too long cost the
// rounds that they overlap, and no more: the schedule stays.
func ExampleInterval_Ticks() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var first time.Time
	for tick := range timer.NewInterval(2*time.Millisecond, nil).Ticks(ctx) {
		if first.IsZero() {
			first = tick.At
			time.Sleep(5 * time.Millisecond) // Too long.
		}
		if tick.Missed > 0 {
			fmt.Println("on the schedule:", tick.At.Sub(first)%(2*time.Millisecond) == 0)
			cancel()
		}
	}
	fmt.Println("done")
	// Output:
	// on the schedule: true
	// done
}

// Ticks among other things to wait for.
func ExampleInterval_C() {
	requests := make(chan string, 1)
	requests <- "request"
	flush := timer.NewInterval(time.Millisecond, nil)
	for flushed := false; !flushed; {
		select {
		case r := <-requests:
			fmt.Println(r)
		case <-flush.C():
			if _, ok := flush.Take(); ok {
				fmt.Println("flush")
				flushed = true
			}
		}
	}
	// Unordered output:
	// request
	// flush
}

// Every tenth of a second, by the wall clock: as is wanted of what is collected on
// many machines and compared.
func ExampleTickOptions_aligned() {
	iv := timer.NewInterval(100*time.Millisecond, &timer.TickOptions{Aligned: true})
	tick, err := iv.Wait(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(tick.At.Nanosecond()%int(100*time.Millisecond), "ns beside a multiple")
	// Output:
	// 0 ns beside a multiple
}

// A function that is called again and again, but never while it runs. This one has
// to be called for every tick, and catches up when it is late.
func ExampleTickFunc() {
	var done sync.WaitGroup
	done.Add(3)
	left := 3
	count := func(tick timer.Ticked) {
		if left--; left >= 0 {
			fmt.Println("tick, missed", tick.Missed)
			done.Done()
		}
	}
	iv := timer.TickFunc(time.Millisecond, count, &timer.TickOptions{Missed: timer.Burst})
	done.Wait()
	iv.Stop()
	// Output:
	// tick, missed 0
	// tick, missed 0
	// tick, missed 0
}
