package timer_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/detent-go/detent/timer"
)

// Something to be done at a time of day: if the clock is set, the timer follows.
func ExampleOptions_realtime() {
	wall, err := timer.New(&timer.Options{
		Clock:      timer.Realtime,
		OnClockSet: func(delta time.Duration) { fmt.Println("the clock has been set by", delta) },
	})
	if err != nil {
		panic(err)
	}
	defer wall.Close()

	// In a program, time.Date(2027, 1, 1, 3, 0, 0, 0, time.Local), say.
	at := wall.Now().Add(20 * time.Millisecond)
	done := make(chan struct{})
	wall.AfterFuncAt(at, func() {
		fmt.Println("is it time?", !wall.Now().Before(at))
		close(done)
	})
	<-done
	// Output: is it time? true
}

// A lease that ends after ten seconds, also if the machine sleeps meanwhile. Where
// that clock does not exist, the default has to do.
func ExampleOptions_boottime() {
	leases, err := timer.New(&timer.Options{Clock: timer.Boottime})
	if errors.Is(err, errors.ErrUnsupported) {
		leases = timer.Default()
	} else if err != nil {
		panic(err)
	}

	lease := leases.AfterFunc(10*time.Second, func() { fmt.Println("the lease has ended") })
	fmt.Println("renewed:", lease.Reset(10*time.Second))
	fmt.Println("given back:", lease.Stop())
	// Output:
	// renewed: true
	// given back: true
}
