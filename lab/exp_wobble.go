package lab

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/detent-go/detent/probe"
)

const wobbleCase = "time.Now, Gosched between"

// wobbles measures on the first pair of CPUs of each relation that there is.
func wobbles(ctx context.Context, p Plan, r *Result, d *probe.CounterData) error {
	pairs := map[probe.Relation]*probe.PairOffset{}
	for i := range d.Pairs {
		if pair := &d.Pairs[i]; pairs[pair.Relation] == nil {
			pairs[pair.Relation] = pair
		}
	}
	for _, relation := range []probe.Relation{probe.SameCore, probe.SameNode, probe.SameSocket, probe.OtherSocket} {
		in := map[probe.Relation]string{probe.SameCore: "two logical CPUs of one core (SMT)", probe.SameNode: "different physical cores"}[relation]
		add := func(what, statistic string, here *float64) {
			f := Figure{What: what, Who: string(relation), Case: wobbleCase, Unit: Nanoseconds, Here: here}
			f.Published = published("clock_figures", "value", map[string]string{"id": "C6", "case": in, "statistic": statistic})
			if f.Here != nil || f.Published != nil {
				r.add(f)
			}
		}
		var mean, most *float64
		if pair := pairs[relation]; pair != nil {
			if err := alive(ctx); err != nil {
				return err
			}
			var list []time.Duration
			if err := onCPUs(pair.From, pair.To, func() { list = gaps(5 * p.Window) }); err != nil {
				r.skip("the wobble of "+string(relation), err)
			} else {
				a, b := wobble(list)
				mean, most = is(a), is(b)
			}
		}
		add(wobbleMean, "mean wobble", mean)
		add("wobble, p99", "max deviation", most)
	}
	return nil
}

const wobbleMean = "wobble, mean"

// gaps has two goroutines take differences of readings with a Gosched between.
func gaps(window time.Duration) []time.Duration {
	defer withProcs(2)()
	var all collected[[]time.Duration]
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			var list []time.Duration
			for begin := time.Now(); len(list) == 0 || time.Since(begin) < window; {
				for range 1000 {
					a := time.Now()
					runtime.Gosched()
					list = append(list, time.Since(a))
				}
			}
			all.add(list)
		})
	}
	wg.Wait()
	return slices.Concat(all.list...)
}

// wobble returns the mean distance from the median, of all but the hundredth that is
// farthest off, and the largest distance of those.
func wobble(list []time.Duration) (mean, most float64) {
	if len(list) == 0 {
		return 0, 0
	}
	slices.Sort(list)
	mid := list[len(list)/2]
	far := make([]time.Duration, len(list))
	for i, d := range list {
		far[i] = (d - mid).Abs()
	}
	slices.Sort(far)
	far = far[:max(len(far)*99/100, 1)]
	var sum float64
	for _, d := range far {
		sum += float64(d)
	}
	return sum / float64(len(far)), float64(far[len(far)-1])
}
