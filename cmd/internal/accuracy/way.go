package accuracy

import (
	"errors"
	"fmt"
	"time"

	"github.com/detent-go/detent/timer"
)

// A Way is a way to wait.
type Way struct {
	Name  string
	Slack string // how much later than its deadline it may be by choice
	// open makes it ready; it fails where the machine does not have this way.
	open func() (waiter, error)
}

// A waiter waits: by sleep, or where that is nil, by a callback on s.
type waiter struct {
	sleep  func(time.Duration)
	s      *timer.Service
	closer func() error
}

func none() error { return nil }

// sleeping is a way that needs no service of its own.
func sleeping(sleep func(time.Duration)) func() (waiter, error) {
	return func() (waiter, error) { return waiter{sleep: sleep, closer: none}, nil }
}

// onLane is callbacks on a lane. Sleeps would not do: a goroutine that a lane wakes
// waits for the Go scheduler as any other does.
func onLane(o timer.LaneOptions) func() (waiter, error) {
	return func() (waiter, error) {
		s, err := timer.NewLane(&o)
		if err != nil {
			return waiter{}, err
		}
		return waiter{s: s, closer: s.Close}, nil
	}
}

// Names of the ways that the rate limiters are run on.
const (
	wayTime = "time.Sleep"
	wayAuto = "timer.Sleep"
	waySpin = "Sleep of WithSpin"
)

// wayNever is the floor that the others stand on.
const wayNever = "spinning all the time"

// spinFor returns when d has passed, and keeps the CPU until then.
func spinFor(d time.Duration) {
	for began := time.Now(); time.Since(began) < d; {
	}
}

// Ways returns all ways, package time's first.
func Ways() []Way {
	slack := func(d time.Duration) Way {
		return Way{
			Name:  fmt.Sprintf("Sleep of WithSlack(%v)", d),
			Slack: d.String(),
			open:  sleeping(timer.Default().WithSlack(d).Sleep),
		}
	}
	return []Way{
		{wayTime, "none", sleeping(time.Sleep)},
		{wayAuto, "d/1000", sleeping(timer.Sleep)},
		slack(0), slack(time.Millisecond), slack(10 * time.Millisecond),
		{waySpin, "none", sleeping(timer.Default().WithSpin().Sleep)},
		{"callback on a lane", "none", onLane(timer.LaneOptions{})},
		{"callback on a lane that spins", "none", onLane(timer.LaneOptions{Spin: true})},
		{"callback on a lane, SCHED_FIFO 80", "none", onLane(timer.LaneOptions{Priority: 80})},
		{wayNever, "none", sleeping(spinFor)},
	}
}

// opened is a way that is ready.
type opened struct {
	*Way
	waiter
}

// openAll makes the ways ready, and says of the others why they are not.
func openAll(ways []Way) (ready []opened, missing []Missing) {
	for k := range ways {
		w := &ways[k]
		x, err := w.open()
		if err != nil {
			missing = append(missing, Missing{Way: w.Name, Reason: err.Error()})
			continue
		}
		x.sample(nil, 0) // Starts what the first timer starts.
		ready = append(ready, opened{w, x})
	}
	return ready, missing
}

func closeAll(ways []opened) error {
	var errs []error
	for _, w := range ways {
		if err := w.closer(); err != nil {
			errs = append(errs, fmt.Errorf("closing %s: %w", w.Name, err))
		}
	}
	return errors.Join(errs...)
}
