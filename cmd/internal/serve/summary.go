package serve

import (
	"math"
	"slices"
	"sort"
	"time"
)

// summarize sums up latenesses, which it leaves as they are.
func summarize(way string, late []time.Duration, last time.Duration) Sleep {
	s := Sleep{Way: way, Count: len(late), Last: last, Counts: make([]int, len(SleepBounds)+1)}
	if len(late) == 0 {
		return s
	}
	sorted := slices.Sorted(slices.Values(late))
	at := func(q float64) time.Duration {
		return sorted[min(max(int(math.Ceil(q*float64(len(sorted))))-1, 0), len(sorted)-1)]
	}
	s.P50, s.P99, s.Max = at(0.5), at(0.99), sorted[len(sorted)-1]
	for _, d := range sorted {
		s.Counts[sort.Search(len(SleepBounds), func(i int) bool { return d <= SleepBounds[i] })]++
	}
	return s
}

// nowCostOf sorts the costs of bursts.
func nowCostOf(bursts []float64) NowCost {
	slices.Sort(bursts)
	return NowCost{bursts[0], bursts[len(bursts)/2]}
}
