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
		return time.Duration(len(p.Procs)*len(concurrencies)*len(engines.All())*p.Rounds) * p.Window
	},
	run: func(ctx context.Context, p Plan, r *Result) error {
		for _, procs := range p.Procs {
			restore := withProcs(procs)
			err := contextsAt(ctx, p, r, procs)
			restore()
			if err != nil {
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
	open, closeAll := openEngines(r, procs, 0)
	defer closeAll()
	for _, n := range concurrencies {
		took := map[string][]float64{}
		for _, e := range open {
			var cancels []context.CancelFunc
			for range n {
				_, cancel := e.WithTimeout(context.Background(), time.Hour+rand.N(time.Hour))
				cancels = append(cancels, cancel)
			}
			for range p.Rounds {
				if err := alive(ctx); err != nil {
					return err
				}
				took[e.info.Name] = append(took[e.info.Name], perOp(p.Window, func() {
					_, cancel := e.WithTimeout(context.Background(), 12*time.Hour)
					cancel()
				}))
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
