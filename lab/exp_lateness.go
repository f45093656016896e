package lab

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/detent-go/detent/lab/engine"
	"github.com/detent-go/detent/lab/engine/detent"
	"github.com/detent-go/detent/lab/engines"
)

// lateBy returns a function that starts a timer of e and has f told by how much too
// late it fired; less than 0 if it was early.
func lateBy(e engine.Engine) func(d time.Duration, f func(time.Duration)) {
	return func(d time.Duration, f func(time.Duration)) {
		deadline := time.Now().Add(d)
		e.AfterFunc(d, func() { f(time.Since(deadline)) })
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

func spinners(each int) (stop func()) { return spinning(each * runtime.GOMAXPROCS(0)) }

// spinning has n goroutines compute.
func spinning(n int) (stop func()) {
	var end atomic.Bool
	var wg sync.WaitGroup
	for range n {
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
	About: "By how much timers of 1 ms fire too late, one after another, while the Go scheduler is idle or busy in three ways. The lane is a thread of its own that calls the functions.",
	Takes: func(p Plan) time.Duration {
		return time.Duration((len(engines.All())+1)*len(loads)*p.Rounds) * (max(2*p.Window, 60*time.Millisecond) + 20*time.Millisecond)
	},
	run: func(ctx context.Context, p Plan, r *Result) error {
		infos := append(engines.All(), detent.LaneInfo())
		lost := map[string]bool{}
		plot := Plot{ID: "lateness", Title: "p50 of lateness", Kind: Heat, Unit: Nanoseconds}
		cells := map[string][]float64{}
		for _, l := range loads {
			plot.Columns = append(plot.Columns, l.name)
			late := map[string][]time.Duration{}
			for range p.Rounds {
				for _, info := range infos {
					if err := alive(ctx); err != nil {
						return err
					}
					if lost[info.Name] {
						continue
					}
					s, err := underLoad(ctx, info, l, max(2*p.Window, 60*time.Millisecond))
					if err != nil {
						lost[info.Name] = true
						r.skipOnce(info.Name+", "+l.name+", and what follows", err)
						continue
					}
					late[info.Name] = append(late[info.Name], s...)
				}
			}
			for _, info := range infos {
				s := late[info.Name]
				if len(s) == 0 {
					cells[info.Name] = append(cells[info.Name], -1)
					continue
				}
				slices.Sort(s)
				early, _ := slices.BinarySearch(s, 0)
				add := func(what string, unit Unit, v float64) {
					r.add(Figure{What: what, Who: info.Name, Case: l.name, Unit: unit, Here: is(v)})
				}
				add("lateness p50", Nanoseconds, max(quantile(s, 0.5), 0))
				add("lateness p90", Nanoseconds, max(quantile(s, 0.9), 0))
				add("lateness, most", Nanoseconds, max(quantile(s, 1), 0))
				add("fired early", Percent, 100*float64(early)/float64(len(s)))
				add("timers", Count, float64(len(s)))
				cells[info.Name] = append(cells[info.Name], max(quantile(s, 0.5), 0))
			}
		}
		for _, info := range infos {
			if slices.Max(cells[info.Name]) < 0 {
				continue
			}
			plot.Labels = append(plot.Labels, info.Name)
			plot.Series = append(plot.Series, Series{Name: info.Name, Values: cells[info.Name]})
		}
		r.Plots = append(r.Plots, plot)
		return nil
	},
}

// underLoad starts timers of an engine one after another until the window is over, one
// at least. No other engine is there meanwhile, lest its ticks wake the scheduler.
func underLoad(ctx context.Context, info engine.Info, l load, window time.Duration) (list []time.Duration, err error) {
	e, err := started(ctx, info, 0)
	if err != nil {
		return nil, err
	}
	stop := l.start()
	start := lateBy(e)
	for begin := time.Now(); len(list) == 0 || time.Since(begin) < window; {
		done := make(chan time.Duration, 1)
		start(time.Millisecond, func(late time.Duration) { done <- late })
		late, err := within(ctx, func() time.Duration { return <-done })
		if err != nil {
			stop()
			return list, err
		}
		list = append(list, late)
	}
	stop()
	return list, e.Close()
}
