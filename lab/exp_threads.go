package lab

import (
	"context"
	"errors"
	"time"
)

// sleepers is how many goroutines the article had in nanosleep at a time.
const sleepers = 100

var sleeperThreads = Experiment{
	Name:  "threads",
	Title: "A hundred goroutines in nanosleep, and their threads",
	About: "Threads of the process before, while a hundred goroutines are in nanosleep(2), and after: as they are, and when each goroutine ends while it is locked to its thread.",
	Takes: func(Plan) time.Duration { return 3 * time.Second },
	run: func(ctx context.Context, p Plan, r *Result) error {
		if _, err := threads(); err != nil {
			return err
		}
		// The locked ones first: threads that the others leave behind are not in
		// their way then.
		for _, locked := range []bool{true, false} {
			if err := alive(ctx); err != nil {
				return err
			}
			in := "as they are"
			if locked {
				in = "ending locked"
			}
			before, during, after, err := inNanosleep(sleepers, locked)
			if err != nil {
				return err
			}
			r.add(Figure{What: "threads before", Who: "nanosleep", Case: in, Here: is(float64(before)), Published: publishedThreads(locked, 4)})
			r.add(Figure{What: "threads during", Who: "nanosleep", Case: in, Here: is(float64(during)), Published: publishedThreads(locked, 103)})
			r.add(Figure{What: "threads after", Who: "nanosleep", Case: in, Here: is(float64(after))})
		}
		return nil
	},
}

// publishedThreads are the article's: from 4 threads to 103.
func publishedThreads(locked bool, n float64) *float64 {
	if locked {
		return nil
	}
	return &n
}

var errNoThreads = errors.New("this system does not tell how many threads a process has")
