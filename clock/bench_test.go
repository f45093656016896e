package clock

import (
	"slices"
	"testing"
	"time"
)

// A reading reads some clock n times.
type reading struct {
	name string
	read func(n int)
}

var (
	sinkNanos int64
	sinkTime  time.Time
)

// BenchmarkClocks reads everything that this package has, and what there is
// otherwise. To compare it with time.Now in spite of what else the machine does,
// thousands of readings are timed in turns with thousands of time.Now, and the
// medians are reported: "x-time.Now" is how often a reading fits into a time.Now.
func BenchmarkClocks(b *testing.B) {
	from := time.Now()
	var c TSC
	readings := []reading{
		{"time.Now", timeNow},
		// runtime.nanotime and a subtraction.
		{"time.Since", func(n int) {
			for range n {
				sinkNanos = int64(time.Since(from))
			}
		}},
		{"Mono", func(n int) { readClock(n, Mono) }},
		{"Raw", func(n int) { readClock(n, Raw) }},
		{"Boot", func(n int) { readClock(n, Boot) }},
		{"Real", func(n int) { readClock(n, Real) }},
		{"TAI", func(n int) { readClock(n, TAI) }},
		{"MonoCoarse", func(n int) { readClock(n, MonoCoarse) }},
		{"RealCoarse", func(n int) { readClock(n, RealCoarse) }},
		{"TSC.Ordered", func(n int) {
			for range n {
				sinkNanos = c.Ordered()
			}
		}},
		{"TSC.Unordered", func(n int) {
			for range n {
				sinkNanos = c.Unordered()
			}
		}},
		{"TSC.Bounded", func(n int) {
			for range n {
				sinkNanos, _ = c.Bounded()
			}
		}},
		{"Now", func(n int) {
			for range n {
				sinkTime = Now()
			}
		}},
	}
	readings = append(readings, otherReadings...)
	for _, r := range readings {
		b.Run(r.name, func(b *testing.B) {
			c.Health()
			Now()
			time.Sleep(2 * calibration) // so that the next readings are of the counter
			var mine, others []float64
			for left := b.N; left > 0; {
				n := min(left, 1000)
				left -= n
				began := Mono.Nanos()
				r.read(n)
				middle := Mono.Nanos()
				timeNow(n)
				end := Mono.Nanos()
				mine = append(mine, float64(middle-began)/float64(n))
				others = append(others, float64(end-middle)/float64(n))
			}
			slices.Sort(mine)
			slices.Sort(others)
			b.ReportMetric(mine[len(mine)/2], "ns/op")
			b.ReportMetric(others[len(others)/2]/mine[len(mine)/2], "x-time.Now")
		})
	}
}

func timeNow(n int) {
	for range n {
		sinkTime = time.Now()
	}
}

func readClock(n int, c Clock) {
	for range n {
		sinkNanos = c.Nanos()
	}
}

// BenchmarkFallback is what readings cost while the counter is not trusted.
func BenchmarkFallback(b *testing.B) {
	b.Run("TSC.Ordered", func(b *testing.B) {
		c := new(TSC)
		c.engine.trust = func() error { return errBusy }
		for b.Loop() {
			sinkNanos = c.Ordered()
		}
	})
	b.Run("Now", func(b *testing.B) {
		c := new(nowClock)
		c.engine.trust = func() error { return errBusy }
		for b.Loop() {
			sinkTime = c.now()
		}
	})
	b.Run("time.Now", func(b *testing.B) {
		for b.Loop() {
			sinkTime = time.Now()
		}
	})
}

// BenchmarkRarely reads once in a millisecond, where a TSC is the kernel's clock.
// Caches are cold then.
func BenchmarkRarely(b *testing.B) {
	var c TSC
	c.Health()
	Now()
	time.Sleep(2 * calibration)
	for _, r := range []reading{
		{"time.Now", timeNow},
		{"Mono", func(n int) { readClock(n, Mono) }},
		{"TSC.Ordered", func(int) { sinkNanos = c.Ordered() }},
		{"Now", func(int) { sinkTime = Now() }},
	} {
		b.Run(r.name, func(b *testing.B) {
			var sum time.Duration
			for range b.N {
				time.Sleep(time.Millisecond)
				began := Mono.Nanos()
				r.read(1)
				sum += Mono.Since(began)
			}
			b.ReportMetric(float64(sum)/float64(b.N), "ns/reading")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkParallel reads on all CPUs: clocks share nothing that is written.
func BenchmarkParallel(b *testing.B) {
	var c TSC
	c.Health()
	time.Sleep(2 * calibration)
	parallel := func(name string, read func() int64) {
		b.Run(name, func(b *testing.B) {
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					read()
				}
			})
		})
	}
	parallel("Mono", Mono.Nanos)
	parallel("TSC.Ordered", c.Ordered)
}
