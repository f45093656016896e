package bench

import "time"

// usage is what this process has used since it started.
type usage struct {
	cpu time.Duration // user and system
	// switches counts the times that a thread gave up its CPU to wait;
	// negative where the system does not tell.
	switches int64
	err      error // why there is none
}

// addCPU gives v the CPU time between two readings, which to turns into the
// metric's unit. Where it cannot be read the metric is missing.
func (v values) addCPU(metric string, from, till usage, to func(time.Duration) float64) {
	if from.err == nil && till.err == nil {
		v[metric] = to(till.cpu - from.cpu)
	}
}

func millis(d time.Duration) float64 { return float64(d) / 1e6 }
