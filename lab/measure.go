package lab

import (
	"context"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// perOp runs op again and again on as many goroutines as there are Ps until the
// window is over, and returns the nanoseconds for each operation of all together.
func perOp(window time.Duration, op func()) float64 {
	var ops atomic.Int64
	var wg sync.WaitGroup
	begin := time.Now()
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			n := int64(0)
			for {
				op()
				n++
				if time.Since(begin) >= window {
					break
				}
			}
			ops.Add(n)
		})
	}
	wg.Wait()
	return float64(time.Since(begin)) / float64(ops.Load())
}

// perCall is perOp for what takes nanoseconds: one goroutine, and the clock is read
// for every so many calls.
func perCall(window time.Duration, call func()) float64 {
	const batch = 1000
	n := 0
	begin := time.Now()
	for {
		for range batch {
			call()
		}
		n += batch
		if d := time.Since(begin); d >= window {
			return float64(d) / float64(n)
		}
	}
}

// perLongCall is perCall for what takes microseconds: the clock is read after each.
func perLongCall(window time.Duration, call func()) float64 {
	begin := time.Now()
	for n := 1; ; n++ {
		call()
		if d := time.Since(begin); d >= window {
			return float64(d) / float64(n)
		}
	}
}

// withProcs sets GOMAXPROCS and returns what puts it back.
func withProcs(n int) (restore func()) {
	old := runtime.GOMAXPROCS(n)
	return func() { runtime.GOMAXPROCS(old) }
}

// median of values, which it sorts; NaN of none.
func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// quantile of durations, which must be sorted; 0 of none.
func quantile(sorted []time.Duration, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return float64(sorted[min(max(int(math.Ceil(q*float64(len(sorted))))-1, 0), len(sorted)-1)])
}

// allocated returns the bytes and objects that f allocates.
func allocated(f func()) (bytes, objects float64) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return float64(after.TotalAlloc - before.TotalAlloc), float64(after.Mallocs - before.Mallocs)
}

// alive returns ctx's error.
func alive(ctx context.Context) error { return context.Cause(ctx) }

// tail returns the points of a plot of kind Tails: for durations that occur, which
// part of all, in percent, is longer.
func tail(sorted []time.Duration) [][2]float64 {
	var points [][2]float64
	n := float64(len(sorted))
	for i, d := range sorted {
		if i > 0 && d == sorted[i-1] || len(sorted) > 200 && i%(len(sorted)/200) != 0 && i < len(sorted)-20 {
			continue
		}
		points = append(points, [2]float64{max(float64(d), 1), max(100*(n-float64(i))/n, 0.001)})
	}
	return points
}
