package timer_test

import (
	"context"
	"fmt"
	"time"

	"github.com/detent-go/detent/timer"
)

// Code under test takes a service, and asks it for the time too. In the program
// that is timer.Default().
func reminders(s *timer.Service) {
	start := s.Now()
	var again *timer.Timer
	again = s.AfterFunc(24*time.Hour, func() {
		if s.Now().Weekday() == time.Saturday {
			fmt.Println("week", int(s.Now().Sub(start).Hours())/24/7+1)
		}
		again.Reset(24 * time.Hour)
	})
}

// Four weeks of a program in no time.
func ExampleManual() {
	friday := time.Date(2027, 1, 1, 9, 0, 0, 0, time.UTC)
	clock, err := timer.NewManual(friday, nil)
	if err != nil {
		panic(err)
	}
	reminders(clock.Service)

	clock.Advance(28 * 24 * time.Hour)
	fmt.Println(clock.Now().Format("January 2"))
	// Output:
	// week 1
	// week 2
	// week 3
	// week 4
	// January 29
}

// Goroutines that sleep get to run between the steps of Run.
func ExampleManual_Run() {
	clock, err := timer.NewManual(time.Time{}, nil)
	if err != nil {
		panic(err)
	}
	tries := make(chan time.Duration, 10)
	go func() {
		defer close(tries)
		for delay := time.Second; delay < 20*time.Second; delay *= 2 {
			clock.Sleep(delay)
			tries <- clock.Now().Sub(time.Time{})
		}
	}()

	if !clock.Run(time.Minute) {
		panic("the goroutines do not come to rest")
	}
	for after := range tries {
		fmt.Println("tried after", after)
	}
	// Output:
	// tried after 1s
	// tried after 3s
	// tried after 7s
	// tried after 15s
	// tried after 31s
}

// A goroutine has to have come to its Sleep before the clock moves on.
func ExampleManual_AwaitPending() {
	clock, err := timer.NewManual(time.Time{}, nil)
	if err != nil {
		panic(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		clock.Sleep(time.Hour)
		fmt.Println("an hour later")
	}()

	// In a test, t.Context().
	if err := clock.AwaitPending(context.Background(), 1); err != nil {
		panic(err)
	}
	clock.Advance(time.Hour)
	<-done
	// Output: an hour later
}
