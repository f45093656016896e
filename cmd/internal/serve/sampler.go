package serve

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/detent-go/detent/clock"
	"github.com/detent-go/detent/timer"
)

const (
	// sampleEvery is how often each way to sleep is tried, and sampleSleeps how many
	// times; sampleFor is the sleep.
	sampleEvery  = time.Second
	sampleSleeps = 5
	sampleFor    = 100 * time.Microsecond

	// sampleKeep is how many samples of each way the page shows the distribution
	// of: those of five minutes.
	sampleKeep = sampleSleeps * 300
)

// A Sleep is how late one way to sleep has been in the last minutes.
type Sleep struct {
	Way    string        `json:"way"`
	Count  int           `json:"count"`
	Last   time.Duration `json:"last_ns"` // the worst of the last second
	P50    time.Duration `json:"p50_ns"`
	P99    time.Duration `json:"p99_ns"`
	Max    time.Duration `json:"max_ns"`
	Counts []int         `json:"counts"` // by SleepBounds, and one more for what is above
}

// SleepBounds are the upper bounds of Sleep.Counts.
var SleepBounds = []time.Duration{
	5_000, 10_000, 20_000, 35_000, 50_000, 75_000, 100_000, 150_000, 250_000, 500_000, 750_000,
	1_000_000, 1_250_000, 1_500_000, 2_000_000, 3_000_000, 5_000_000, 10_000_000, 20_000_000, 50_000_000, 100_000_000,
}

// NowCost is what time.Now costs now, in nanoseconds.
type NowCost struct {
	Least   float64 `json:"least_ns"`
	Typical float64 `json:"typical_ns"`
}

// sampler sleeps, and measures by how much too long.
type sampler struct {
	ways []*sampleWay
	hist *prometheus.HistogramVec
	// tsc is read at each sample: a clock that nobody reads has no health to tell.
	tsc *clock.TSC
}

type sampleWay struct {
	name  string
	sleep func(time.Duration)

	late []time.Duration // the latest, a ring
	next int
	last time.Duration
}

func newSampler() *sampler {
	exact := timer.Default().WithSlack(0)
	return &sampler{
		ways: []*sampleWay{
			{name: "time.Sleep", sleep: time.Sleep},
			{name: "timer.Sleep", sleep: exact.Sleep},
		},
		hist: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:                        "detent_sleep_lateness_seconds",
			Help:                        "By how much a sleep of 100 microseconds was too long, by the way to sleep; a sample of each every second.",
			Buckets:                     []float64{10e-6, 25e-6, 50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2e-3, 5e-3, 10e-3, 25e-3, 100e-3, 1},
			NativeHistogramBucketFactor: 1.1, NativeHistogramZeroThreshold: 1e-9, NativeHistogramMaxBucketNumber: 160,
		}, []string{"way"}),
	}
}

// run samples until ctx ends.
func (s *sampler) run(ctx context.Context, b *board) {
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for {
		var list []Sleep
		for _, w := range s.ways {
			list = append(list, w.sample(s.hist.WithLabelValues(w.name)))
		}
		s.tsc.Ordered()
		cost := timeNowCost()
		b.update(func(st *State) { st.Sleeps, st.Now = list, cost })
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// sample sleeps some times, and sums up what is kept.
func (w *sampleWay) sample(o prometheus.Observer) Sleep {
	w.last = 0
	for range sampleSleeps {
		begin := time.Now()
		w.sleep(sampleFor)
		late := max(time.Since(begin)-sampleFor, 0)
		o.Observe(late.Seconds())
		w.last = max(w.last, late)
		if len(w.late) < sampleKeep {
			w.late = append(w.late, late)
		} else {
			w.late[w.next] = late
			w.next = (w.next + 1) % sampleKeep
		}
	}
	return summarize(w.name, w.late, w.last)
}

// timeNowCost takes some microseconds.
func timeNowCost() NowCost {
	const bursts, readings = 31, 16
	var each [bursts]float64
	for i := range each {
		begin := time.Now()
		end := begin
		for range readings {
			end = time.Now()
		}
		each[i] = float64(end.Sub(begin)) / readings
	}
	return nowCostOf(each[:])
}
