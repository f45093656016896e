package accuracy

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/detent-go/detent/cmd/internal/load"
	"github.com/detent-go/detent/timer"
)

// A Cell is how late one way was under one load, in nanoseconds.
type Cell struct {
	Way   string    `json:"way"`
	Slack string    `json:"slack"`
	Load  load.Kind `json:"load"`
	Count int       `json:"count"`
	Early int       `json:"early"` // sleeps that ended before their time
	P50   int64     `json:"p50_ns"`
	P90   int64     `json:"p90_ns"`
	P99   int64     `json:"p99_ns"`
	Max   int64     `json:"max_ns"`
}

// Waits are of shortest to longest, at random: a slack puts a deadline on a
// grid, so what it costs depends on where the deadline lies.
const (
	shortest = 50 * time.Microsecond
	longest  = 1 * time.Millisecond
)

// pairs is how many pairs of goroutines ping-pong has.
const pairs = 2

// lateness measures every way under every load, each for plan.Window at a time.
func lateness(ctx context.Context, plan Plan, ways []opened, step func(string)) ([]*Cell, error) {
	var cells []*Cell
	for _, kind := range load.Kinds() {
		step(string(kind))
		late := make([][]int64, len(ways))
		for range plan.Rounds {
			for k, w := range ways {
				if ctx.Err() != nil {
					return cells, context.Cause(ctx)
				}
				stop, err := kind.Start(pairs)
				if err != nil {
					return cells, err
				}
				late[k] = w.sample(late[k], plan.Window)
				stop()
			}
		}
		for k, w := range ways {
			c := &Cell{Way: w.Name, Slack: w.Slack, Load: kind}
			c.fill(late[k])
			cells = append(cells, c)
		}
	}
	return cells, nil
}

// sample waits for the window, once at least, and appends how late each wait was.
func (w waiter) sample(late []int64, window time.Duration) []int64 {
	begin := time.Now()
	next := func() time.Duration { return shortest + rand.N(longest-shortest) }
	if w.sleep != nil {
		for {
			d := next()
			from := time.Now()
			w.sleep(d)
			late = append(late, int64(time.Since(from)-d))
			if time.Since(begin) >= window {
				return late
			}
		}
	}
	// Each callback starts the next one.
	done := make(chan struct{})
	var t *timer.Timer
	var from time.Time
	var d time.Duration
	started := make(chan struct{})
	f := func() {
		late = append(late, int64(time.Since(from)-d))
		<-started
		if time.Since(begin) >= window {
			close(done)
			return
		}
		d, from = next(), time.Now()
		t.Reset(d)
	}
	d, from = next(), time.Now()
	t = w.s.AfterFunc(d, f)
	close(started) // t is there for the callback from now on.
	<-done
	return late
}

// fill sorts late and takes the figures from it.
func (c *Cell) fill(late []int64) {
	slices.Sort(late)
	c.Count = len(late)
	c.Early, _ = slices.BinarySearch(late, 0)
	c.P50, c.P90, c.P99, c.Max = quantile(late, 0.5), quantile(late, 0.9), quantile(late, 0.99), quantile(late, 1)
}

// quantile returns the q-quantile of sorted values, 0 of none.
func quantile(sorted []int64, q float64) int64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(max(int(math.Ceil(q*float64(len(sorted))))-1, 0), len(sorted)-1)]
}
