package lab

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/detent-go/detent/lab/engines"
)

// concurrencies are those of package context's benchmark.
func concurrencies() []int { return []int{40, 4_000, 400_000} }

var contextBenchmarks = Experiment{
	Name:  "context",
	Title: "WithTimeout and cancel, over every engine",
	About: "Nanoseconds for making and cancelling a context with a timeout while so many others are pending: package context's BenchmarkWithTimeout. Medians of rounds in turn; the pending contexts of an engine are made anew for each round, so that no other engine has any meanwhile.",
	Takes: func(p Plan) time.Duration {
		pending := 0
		for _, n := range p.Waiting {
			pending += n
		}
		runs := time.Duration(len(p.Procs) * len(engines.All()))
		return runs * time.Duration(p.Rounds) * (time.Duration(len(p.Waiting))*(p.Window+10*time.Millisecond) + time.Duration(pending)*1500*time.Nanosecond)
	},
	run: func(ctx context.Context, p Plan, r *Result) error {
		for _, procs := range p.Procs {
			if err := contextsAt(ctx, p, r, procs); err != nil {
				return err
			}
		}
		for _, n := range p.Waiting {
			r.plotBars(fmt.Sprintf("context-%d", n), fmt.Sprintf("WithTimeout with %d pending, by engine and GOMAXPROCS", n), contextName(n))
		}
		return nil
	},
}

func contextName(n int) string { return fmt.Sprintf("WithTimeout/concurrency=%d", n) }

func contextsAt(ctx context.Context, p Plan, r *Result, procs int) error {
	defer withProcs(procs)()
	open, closeAll := openEngines(p, r, procs, 0)
	defer closeAll()
	for _, n := range p.Waiting {
		took := map[string][]float64{}
		for range p.Rounds {
			for _, e := range open {
				if err := alive(ctx); err != nil {
					return err
				}
				if e.lost || e.full == n {
					continue
				}
				v, err := timeouts(ctx, p, e, n)
				switch {
				case errors.Is(err, errNoRoom):
					e.full = n
					r.skipOnce(fmt.Sprintf("%s of %s", contextName(n), e.info.Name), err)
				case err != nil:
					e.lost = true
					r.skipOnce(fmt.Sprintf("%s of %s, and what follows", contextName(n), e.info.Name), err)
				default:
					took[e.info.Name] = append(took[e.info.Name], v)
				}
			}
		}
		for _, e := range open {
			f := Figure{What: contextName(n), Who: e.info.Name, Case: fmt.Sprintf("GOMAXPROCS %d", procs), Unit: Nanoseconds, Here: is(median(took[e.info.Name]))}
			f.Published, f.By = publishedTime("context", contextName(n), e.info.Name, procs)
			r.add(f)
		}
	}
	return nil
}

// timeouts measures one round of an engine, with n contexts of its own pending and
// nobody else's: those of all engines at a time would have each of them pay for the
// collector's way through the others.
func timeouts(ctx context.Context, p Plan, e *opened, n int) (float64, error) {
	cancels := make([]context.CancelFunc, 0, n)
	defer func() {
		for _, cancel := range cancels {
			cancel()
		}
	}()
	f := p.fill(n)
	for i := range n {
		if err := f.made(i); err != nil {
			return 0, err
		}
		_, cancel := e.WithTimeout(context.Background(), time.Hour+rand.N(time.Hour))
		cancels = append(cancels, cancel)
	}
	runtime.GC()
	return within(ctx, func() float64 {
		return perOp(p.Window, func() {
			_, cancel := e.WithTimeout(context.Background(), 12*time.Hour)
			cancel()
		})
	})
}
