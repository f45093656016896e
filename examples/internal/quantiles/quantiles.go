// Package quantiles sums up durations for the examples' output.
package quantiles

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Of returns a line with p50, p99 and the greatest of values, which it sorts.
func Of(values []time.Duration) string {
	if len(values) == 0 {
		return "none"
	}
	slices.Sort(values)
	at := func(q float64) time.Duration {
		i := int(math.Ceil(q*float64(len(values)))) - 1
		return values[min(max(i, 0), len(values)-1)].Round(100 * time.Nanosecond)
	}
	return fmt.Sprintf("p50 %v, p99 %v, worst %v", at(0.5), at(0.99), at(1))
}
