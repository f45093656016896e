package prom

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// nowBursts bursts of nowReadings readings each are timed on each CPU at a
	// time; a burst makes one observation, of its mean. A single reading cannot be
	// timed: that takes as long as the reading.
	nowBursts   = 64
	nowReadings = 8

	// nowEvery is the least time between two rounds over the CPUs.
	nowEvery = 10 * time.Second
)

// nowSampler measures what time.Now costs, on each CPU that the process may use.
//
// Whether it is served by the vDSO is told by comparison: a time.Now that the vDSO
// serves, with its two readings, costs less than one system call.
type nowSampler struct {
	cost *prometheus.HistogramVec

	mu   sync.Mutex
	last time.Time // of the last round
}

func newNowSampler() *nowSampler {
	return &nowSampler{cost: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:                        "detent_time_now_duration_seconds",
		Help:                        "What a call of time.Now costs, by CPU and by whether the vDSO serves it; sampled at scrapes.",
		Buckets:                     []float64{20e-9, 30e-9, 40e-9, 50e-9, 75e-9, 100e-9, 150e-9, 250e-9, 500e-9, 1e-6, 2e-6, 5e-6, 10e-6, 100e-6},
		NativeHistogramBucketFactor: 1.1, NativeHistogramZeroThreshold: zeroThreshold, NativeHistogramMaxBucketNumber: 160,
	}, []string{"cpu", "vdso"})}
}

// sample makes a round, unless the last one was just now.
func (s *nowSampler) sample() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.last.IsZero() && time.Since(s.last) < nowEvery {
		return
	}
	s.last = time.Now()
	forEachCPU(s.round)
}

// round takes observations on the CPU that the calling thread is on.
func (s *nowSampler) round(cpu string) {
	var bursts [nowBursts]time.Duration
	least := time.Duration(1<<63 - 1)
	for i := range bursts {
		begin := time.Now()
		end := begin
		for range nowReadings {
			end = time.Now()
		}
		bursts[i] = end.Sub(begin)
		least = min(least, bursts[i])
	}
	vdso := "no"
	if call := systemCall(); call == 0 {
		vdso = "unknown"
	} else if least/nowReadings < call {
		vdso = "yes"
	}
	observe := s.cost.WithLabelValues(cpu, vdso)
	for _, d := range bursts {
		observe.Observe(d.Seconds() / nowReadings)
	}
}
