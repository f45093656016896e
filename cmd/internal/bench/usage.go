package bench

import (
	"time"

	"github.com/detent-go/detent/cmd/internal/machine"
)

// addCPU gives v the CPU time between two readings, which to turns into the
// metric's unit. Where it cannot be read the metric is missing.
func (v values) addCPU(metric string, from, till machine.Usage, to func(time.Duration) float64) {
	if from.Err == nil && till.Err == nil {
		v[metric] = to(till.CPU - from.CPU)
	}
}

func millis(d time.Duration) float64 { return float64(d) / 1e6 }
