package timer_test

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/detent-go/detent/timer"
)

// A control loop of 1 kHz: its steps run on the lane's thread, and do not wait for
// the Go scheduler to come to them.
func ExampleNewLane() {
	lane, err := timer.NewLane(nil)
	if err != nil {
		panic(err)
	}
	defer lane.Close()

	const period = time.Millisecond
	next := time.Now().Add(period)
	done := make(chan struct{})
	steps := 0
	var loop *timer.Timer
	step := func() {
		if steps++; steps == 20 {
			close(done)
			return
		}
		next = next.Add(period)
		loop.Reset(time.Until(next))
	}
	loop = lane.AfterFunc(time.Hour, step)
	loop.Reset(period)
	<-done
	fmt.Println(steps, "steps")
	// Output: 20 steps
}

// What the process may not do is an error. Whoever can do without it asks again
// for less.
func ExampleNewLane_priority() {
	lane, err := timer.NewLane(&timer.LaneOptions{Priority: 80})
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, errors.ErrUnsupported) {
		// It takes CAP_SYS_NICE, and Linux.
		lane, err = timer.NewLane(nil)
	}
	if err != nil {
		panic(err)
	}
	defer lane.Close()

	lane.Sleep(100 * time.Microsecond)
	fmt.Println("slept")
	// Output: slept
}

// The last stretch of each sleep is spun.
func ExampleService_WithSpin() {
	precise := timer.Default().WithSpin()

	start := time.Now()
	precise.Sleep(200 * time.Microsecond)
	fmt.Println("early:", time.Since(start) < 200*time.Microsecond)
	// Output: early: false
}
