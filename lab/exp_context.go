package lab

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/detent-go/detent/lab/engines"
)

// concurrencies are those of package context's benchmark.
var concurrencies = []int{40, 4_000, 400_000}

var contextBenchmarks = Experiment{
	Name:  "context",
	Title: "WithTimeout and cancel, over every engine",
	About: "Nanoseconds for making and cancelling a context with a timeout while so many others are pending: package context's BenchmarkWithTimeout.",
	Takes: func(p Plan) time.Duration {
		pending := 0
		for _, n := range concurrencies {
			pending += n
		}
		runs := time.Duration(len(p.Procs) * len(engines.All()))
		return runs * (time.Duration(len(concurrencies)*p.Rounds)*p.Window + time.Duration(pending)*2*time.Microsecond)
	},
	run: func(ctx context.Context, p Plan, r *Result) error {
		for _, procs := range p.Procs {
			if err := contextsAt(ctx, p, r, procs); err != nil {
				return err
			}
		}
		for _, n := range concurrencies {
			r.plotBars(fmt.Sprintf("context-%d", n), fmt.Sprintf("WithTimeout with %d pending, by engine and GOMAXPROCS", n), contextName(n))
		}
		return nil
	},
}

func contextName(n int) string { return fmt.Sprintf("WithTimeout/concurrency=%d", n) }

func contextsAt(ctx context.Context, p Plan, r *Result, procs int) error {
	defer withProcs(procs)()
	open, closeAll := openEngines(r, procs, 0)
	defer closeAll()
	for _, n := range concurrencies {
		took := map[string][]float64{}
		for _, e := range open {
			if e.lost {
				continue
			}
			if err := alive(ctx); err != nil {
				return err
			}
			var cancels []context.CancelFunc
			for range n {
				_, cancel := e.WithTimeout(context.Background(), time.Hour+rand.N(time.Hour))
				cancels = append(cancels, cancel)
			}
			for range p.Rounds {
				v, err := within(ctx, func() float64 {
					return perOp(p.Window, func() {
						_, cancel := e.WithTimeout(context.Background(), 12*time.Hour)
						cancel()
					})
				})
				if err != nil {
					e.lost = true
					r.skipOnce(fmt.Sprintf("%s of %s, and what follows", contextName(n), e.info.Name), err)
					break
				}
				took[e.info.Name] = append(took[e.info.Name], v)
			}
			if e.lost {
				continue
			}
			for _, cancel := range cancels {
				cancel()
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
