package lab

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/detent-go/detent/lab/engines"
)

// poolRate is the article's: so many timers a second.
const poolRate = 10_000

var poolAgainstLock = Experiment{
	Name:  "pool",
	Title: "Ten thousand timers a second: one lock, or a pool for each P",
	About: "Lateness of timers of 1 to 5 ms, ten thousand a second, by every engine; the article compares timers behind one lock with a pool for each P.",
	Takes: func(p Plan) time.Duration {
		return time.Duration(len(engines.All())*p.Rounds) * max(5*p.Window, 100*time.Millisecond)
	},
	run: func(ctx context.Context, p Plan, r *Result) error {
		late := map[string][]time.Duration{}
		for range p.Rounds {
			for _, info := range engines.All() {
				if err := alive(ctx); err != nil {
					return err
				}
				e, err := info.New(0)
				if err != nil {
					r.skipOnce(info.Name, err)
					continue
				}
				<-e.After(time.Millisecond)
				late[info.Name] = append(late[info.Name], atRate(lateBy(e), poolRate, max(5*p.Window, 100*time.Millisecond))...)
				if err := e.Close(); err != nil {
					r.skip("closing "+info.Name, err)
				}
			}
		}
		plot := Plot{ID: "pool", Title: r.Title, Kind: Tails, Unit: Nanoseconds}
		for _, info := range engines.All() {
			l := late[info.Name]
			if len(l) == 0 {
				continue
			}
			slices.Sort(l)
			for name, q := range map[string]float64{"p50": 0.5, "p99": 0.99} {
				f := Figure{What: "lateness " + name, Who: info.Name, Case: "10000 a second", Unit: Nanoseconds, Here: is(quantile(l, q))}
				if name == "p99" {
					switch info.Name {
					case "pool1":
						f.Published = publishedClock("C10", "timers behind one global lock")
					case "pool":
						f.Published = publishedClock("C10", "one timer pool per P")
					}
				}
				r.add(f)
			}
			plot.Series = append(plot.Series, Series{Name: info.Name, Points: tail(l)})
		}
		r.Plots = append(r.Plots, plot)
		return nil
	},
}

// atRate starts timers at a rate for the window, and returns how late each fired.
func atRate(start func(d time.Duration, late func(time.Duration)), perSecond int, window time.Duration) []time.Duration {
	var mu sync.Mutex
	var list []time.Duration
	var wg sync.WaitGroup
	begin := time.Now()
	started := 0
	for time.Since(begin) < window {
		for want := int(time.Since(begin).Seconds() * float64(perSecond)); started < want; started++ {
			wg.Add(1)
			start(time.Millisecond+time.Duration(started*7919%4000)*time.Microsecond, func(late time.Duration) {
				mu.Lock()
				list = append(list, late)
				mu.Unlock()
				wg.Done()
			})
		}
		time.Sleep(500 * time.Microsecond)
	}
	wg.Wait()
	return list
}
