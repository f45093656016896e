package lab

import (
	"context"
	"iter"
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
		return time.Duration(len(engines.All())*poolRounds(p)) * max(5*p.Window, 100*time.Millisecond)
	},
	run: func(ctx context.Context, p Plan, r *Result) error {
		late := map[string][]time.Duration{}
		tails := map[string][]float64{} // p99 of each round
		lost := map[string]bool{}
		for range poolRounds(p) {
			for _, info := range engines.All() {
				if err := alive(ctx); err != nil {
					return err
				}
				if lost[info.Name] {
					continue
				}
				e, err := started(ctx, info, 0)
				if err != nil {
					lost[info.Name] = true
					r.skipOnce(info.Name, err)
					continue
				}
				l, err := within(ctx, func() []time.Duration {
					return atRate(lateBy(e), poolRate, max(5*p.Window, 100*time.Millisecond))
				})
				if err != nil {
					lost[info.Name] = true
					r.skipOnce(info.Name, err)
					continue
				}
				slices.Sort(l)
				late[info.Name] = append(late[info.Name], l...)
				tails[info.Name] = append(tails[info.Name], max(quantile(l, 0.99), 0))
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
			r.add(Figure{What: "lateness p50", Who: info.Name, Case: poolCase, Unit: Nanoseconds, Here: is(max(quantile(l, 0.5), 0))})
			f := Figure{What: "lateness p99, median of rounds", Who: info.Name, Case: poolCase, Unit: Nanoseconds, Here: is(median(slices.Clone(tails[info.Name])))}
			switch info.Name {
			case "pool1":
				f.Published = publishedClock("C10", "timers behind one global lock")
			case "pool":
				f.Published = publishedClock("C10", "one timer pool per P")
			}
			r.add(f)
			plot.Series = append(plot.Series, Series{Name: info.Name, Points: tail(l)})
		}
		r.Plots = append(r.Plots, plot)
		compared(r, tails["pool"], tails["pool1"])
		return nil
	},
}

const poolCase = "10000 a second"

// poolRounds are five at least: the tails of two engines are compared round by round.
func poolRounds(p Plan) int {
	if p.Rounds < 2 {
		return p.Rounds // a test
	}
	return max(p.Rounds, 5)
}

// compared adds how many times as late the pool is as the lock, round by round: what
// else the machine does falls on both of a round alike, more or less.
func compared(r *Result, pool, lock []float64) {
	for what, v := range spread("p99 of the pool by that of one lock", pool, lock) {
		r.add(Figure{What: what, Who: "pool / pool1", Case: poolCase, Here: is(v)})
	}
}

// spread yields how many times as much the one is as the other, of the rounds: least,
// median and most.
func spread(what string, one, other []float64) iter.Seq2[string, float64] {
	var times []float64
	for i := range min(len(one), len(other)) {
		times = append(times, one[i]/max(other[i], 1))
	}
	return func(yield func(string, float64) bool) {
		if len(times) == 0 {
			return
		}
		mid := median(times) // which sorts
		_ = yield(what+", least", times[0]) && yield(what+", median", mid) && yield(what+", most", times[len(times)-1])
	}
}

// atRate starts timers at a rate for the window, and returns how late each fired.
func atRate(start func(d time.Duration, late func(time.Duration)), perSecond int, window time.Duration) []time.Duration {
	var list collected[time.Duration]
	var wg sync.WaitGroup
	begin := time.Now()
	count := 0
	for time.Since(begin) < window {
		for want := int(time.Since(begin).Seconds() * float64(perSecond)); count < want; count++ {
			wg.Add(1)
			start(time.Millisecond+time.Duration(count*7919%4000)*time.Microsecond, func(late time.Duration) {
				list.add(late)
				wg.Done()
			})
		}
		time.Sleep(500 * time.Microsecond)
	}
	wg.Wait()
	return list.list
}
