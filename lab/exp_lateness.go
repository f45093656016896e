package lab

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/detent-go/detent/lab/engine"
	"github.com/detent-go/detent/lab/engines"
)

// lateBy returns a function that starts a timer of e and has f told by how much too
// late it fired: 0 if it was not late, also if it was early.
func lateBy(e engine.Engine) func(d time.Duration, f func(time.Duration)) {
	return func(d time.Duration, f func(time.Duration)) {
		deadline := time.Now().Add(d)
		e.AfterFunc(d, func() { f(max(time.Since(deadline), 0)) })
	}
}

// A load keeps the Go scheduler busy until stop is called.
type load struct {
	name  string
	start func() (stop func())
}

var loads = []load{
	{"idle", func() func() { return func() {} }},
	{"one spinning goroutine a P", func() func() { return spinners(1) }},
	{"four spinning goroutines a P", func() func() { return spinners(4) }},
	{"channel ping-pong", pingPong},
}

func spinners(each int) (stop func()) {
	var end atomic.Bool
	var wg sync.WaitGroup
	for range each * runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for !end.Load() {
			}
		})
	}
	return func() { end.Store(true); wg.Wait() }
}

func pingPong() (stop func()) {
	var end atomic.Bool
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		ball := make(chan struct{})
		wg.Go(func() {
			for !end.Load() {
				ball <- struct{}{}
			}
			close(ball)
		})
		wg.Go(func() {
			for range ball {
			}
		})
	}
	return func() { end.Store(true); wg.Wait() }
}

var latenessByLoad = Experiment{
	Name:  "lateness",
	Title: "Lateness by engine and load of the Go scheduler",
	About: "By how much timers of 1 ms fire too late, one after another, while the Go scheduler is idle or busy in three ways.",
	Takes: func(p Plan) time.Duration {
		return time.Duration(len(engines.All())*len(loads)*p.Rounds) * max(2*p.Window, 60*time.Millisecond)
	},
	run: func(ctx context.Context, p Plan, r *Result) error {
		open, closeAll := openEngines(r, 0, 0)
		defer closeAll()
		plot := Plot{ID: "lateness", Title: "p50 of lateness", Kind: Heat, Unit: Nanoseconds}
		cells := map[string][]float64{}
		for _, l := range loads {
			plot.Columns = append(plot.Columns, l.name)
			late := map[string][]time.Duration{}
			for range p.Rounds {
				for _, o := range open {
					if err := alive(ctx); err != nil {
						return err
					}
					late[o.info.Name] = append(late[o.info.Name], underLoad(o.Engine, l, max(2*p.Window, 60*time.Millisecond))...)
				}
			}
			for _, o := range open {
				s := late[o.info.Name]
				slices.Sort(s)
				r.add(Figure{What: "lateness p50", Who: o.info.Name, Case: l.name, Unit: Nanoseconds, Here: is(quantile(s, 0.5))})
				r.add(Figure{What: "lateness p99", Who: o.info.Name, Case: l.name, Unit: Nanoseconds, Here: is(quantile(s, 0.99))})
				cells[o.info.Name] = append(cells[o.info.Name], quantile(s, 0.5))
			}
		}
		for _, o := range open {
			plot.Labels = append(plot.Labels, o.info.Name)
			plot.Series = append(plot.Series, Series{Name: o.info.Name, Values: cells[o.info.Name]})
		}
		r.Plots = append(r.Plots, plot)
		return nil
	},
}

// underLoad starts timers one after another until the window is over, one at least.
func underLoad(e engine.Engine, l load, window time.Duration) (list []time.Duration) {
	stop := l.start()
	defer stop()
	start := lateBy(e)
	for begin := time.Now(); len(list) == 0 || time.Since(begin) < window; {
		done := make(chan time.Duration, 1)
		start(time.Millisecond, func(late time.Duration) { done <- late })
		list = append(list, <-done)
	}
	return list
}
