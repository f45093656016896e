package lab

import (
	"context"
	"errors"
	"time"
)

var monitor = Experiment{
	Name:  "monitor",
	Title: "How often the runtime's monitor wakes up",
	About: "Sleeps of the process's monitor thread, by the kernel's tracepoints: while the program is idle, and while a goroutine computes. The article says every 20 ms.",
	Takes: func(Plan) time.Duration { return 2500 * time.Millisecond },
	run: func(ctx context.Context, _ Plan, r *Result) error {
		const window = time.Second
		for _, busy := range []bool{false, true} {
			if err := alive(ctx); err != nil {
				return err
			}
			in, stop := "idle program", func() {}
			if busy {
				in, stop = "one goroutine computing", spinOne()
			}
			time.Sleep(100 * time.Millisecond) // Lets the monitor find its pace.
			calls, err := countCalls([]string{"nanosleep"})
			if err != nil {
				stop()
				return err
			}
			if calls.slow != "" {
				r.skipOnce("the kernel's own counters", errors.New(calls.slow))
			}
			time.Sleep(window)
			counts := calls.stop()
			stop()
			n := float64(counts["nanosleep"])
			r.add(Figure{What: "sleeps a second", Who: "monitor", Case: in, Unit: PerSecond, Here: is(n / window.Seconds()), Published: is(1e9 / *publishedClock("C12", "idle runtime"))})
		}
		return nil
	},
}

// spinOne has one goroutine compute.
func spinOne() (stop func()) {
	end, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for n := 0; ; n++ {
			if n%1_000_000 == 0 {
				select {
				case <-end:
					return
				default:
				}
			}
		}
	}()
	return func() { close(end); <-done }
}
