package probe

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/detent-go/detent/clock"
	"github.com/detent-go/detent/internal/hostfs"
	"github.com/detent-go/detent/internal/tsc"
)

// StepsData is the data of the check "steps": how often a reading of a clock was
// smaller than one that had been taken before.
type StepsData struct {
	Counts []StepCount `json:"counts"`
	// WallMoved is by how much somebody has set the wall clock meanwhile.
	WallMoved time.Duration `json:"wall_moved_ns"`
	// Clocksource is the kernel's, and Trusted says that it is the cycle counter.
	Clocksource string `json:"clocksource,omitempty"`
	Trusted     bool   `json:"trusted"`
}

// A StepCount is of one clock, read in one way.
type StepCount struct {
	Clock    string `json:"clock"`
	Promise  string `json:"promise"` // one of the Promise constants
	Method   Method `json:"method"`
	Threads  int    `json:"threads"`
	Readings uint64 `json:"readings"`
	// Back is the number of readings that were smaller than one that had been taken
	// before, and Worst by how much.
	Back  uint64        `json:"back"`
	Worst time.Duration `json:"worst_ns"`
}

// What clocks promise about their order.
const (
	PromiseOrdered   = "never back" // the kernel's clocks but the wall clock
	PromiseWall      = "unless set" // the wall clock
	PromiseCounter   = "if in step" // the bare counter, ordered
	PromiseUnordered = "none"       // the bare counter, unordered
)

// A Method is how steps back are looked for.
type Method string

const (
	// OneCPU: a thread that stays on its CPU compares each reading with its last.
	OneCPU Method = "one CPU"
	// Migrating: a thread that goes from CPU to CPU does.
	Migrating Method = "migrating thread"
	// Goroutines: two goroutines a P do, and let the scheduler move them.
	Goroutines Method = "goroutines"
	// Shared: threads on different CPUs compare their readings with the largest of
	// all.
	Shared Method = "shared maximum"
)

// methods are in the order of what they can find: should the time not suffice, the
// last are left out.
var methods = []Method{Shared, Migrating, Goroutines, OneCPU}

// A stepClock is one that is looked at. unit is nanoseconds for one of what read
// returns.
type stepClock struct {
	name    string
	promise string
	read    func() int64
	unit    float64
}

func stepClocks() []stepClock {
	began := time.Now()
	list := []stepClock{
		{"time.Now", PromiseWall, func() int64 { return time.Now().UnixNano() }, 1},
		{"time.Now, monotonic", PromiseOrdered, func() int64 { now := time.Now(); return int64(now.Sub(began)) }, 1},
		{"clock.Mono", PromiseOrdered, clock.Mono.Nanos, 1},
		{"clock.Raw", PromiseOrdered, clock.Raw.Nanos, 1},
	}
	if tsc.Check() != nil {
		return list
	}
	var counter clock.TSC
	settle(&counter)
	unit := 1e9 / counterHz()
	return append(list,
		stepClock{"clock.TSC, ordered", PromiseOrdered, counter.Ordered, 1},
		stepClock{"counter, ordered", PromiseCounter, func() int64 { return int64(tsc.Ordered()) }, unit},
		stepClock{"counter, unordered", PromiseUnordered, func() int64 { return int64(tsc.Unordered()) }, unit},
	)
}

// counterHz returns the counter's frequency, good enough to tell how far a step
// goes.
func counterHz() float64 {
	first := tsc.Take(clock.Mono.Nanos, 1, 8, 0)
	for s := newStopwatch(); s.ns() < 2e6; {
		runtime.Gosched()
	}
	if hz, _ := tsc.Fit(first, tsc.Take(clock.Mono.Nanos, 1, 8, 0)); hz > 0 {
		return hz
	}
	return 1e9
}

func stepsTime(e Effort) time.Duration {
	switch e {
	case Quick:
		return 350 * time.Millisecond
	case Thorough:
		return time.Minute
	}
	return 2 * time.Second
}

// mostThreads share a maximum: more of them would wait for its cache line longer
// than they read.
const mostThreads = 16

// measureStepsBack looks at every clock in every way.
func measureStepsBack(ctx context.Context, e *Env) (*StepsData, error) {
	d := &StepsData{}
	if source, err := hostfs.ReadClocksource(e.Root); err == nil {
		d.Clocksource = source.Current
		d.Trusted = source.Current == "tsc" || source.Current == "arch_sys_counter"
	}
	cpus, err := tsc.CPUs()
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return nil, err
	}
	clocks := stepClocks()
	within := stepsTime(e.Effort)
	each := within / time.Duration(len(clocks)*len(methods))
	before := wallOffset()
	counts := map[string][]StepCount{}
	left, s := 0, newStopwatch()
	for _, m := range methods {
		for _, c := range clocks {
			if m == Migrating && len(cpus) < 2 || m == Shared && runtime.GOMAXPROCS(0) < 2 {
				continue
			}
			// Threads that wait for a CPU take longer.
			if ctx.Err() != nil || s.ns() > 2*int64(within) {
				left++
				continue
			}
			count := StepCount{Clock: c.name, Promise: c.promise, Method: m}
			b := countSteps(ctx, c.read, m, cpus, each)
			count.Threads, count.Readings, count.Back = b.threads, b.readings, b.back
			count.Worst = time.Duration(math.Ceil(float64(b.worst) * c.unit))
			counts[c.name] = append(counts[c.name], count)
		}
	}
	for _, c := range clocks {
		d.Counts = append(d.Counts, counts[c.name]...)
	}
	d.WallMoved = wallOffset() - before
	// Two readings of the difference agree to some tens of nanoseconds.
	if d.WallMoved.Abs() < time.Microsecond {
		d.WallMoved = 0
	}
	switch err := ended(ctx); {
	case errors.Is(err, ErrNoTime):
		left = max(left, 1) // the last was cut short
	case err != nil:
		return d, err
	}
	if left > 0 {
		return d, fmt.Errorf("%w for %d of %d clocks and ways to read them", ErrNoTime, left, len(clocks)*len(methods))
	}
	return d, nil
}

// wallOffset returns what the wall clock is ahead of the monotonic one: only
// setting it changes that.
func wallOffset() time.Duration {
	best, offset := int64(math.MaxInt64), int64(0)
	for range 50 {
		a := clock.Mono.Nanos()
		wall := time.Now().UnixNano()
		b := clock.Mono.Nanos()
		if b-a < best {
			best, offset = b-a, wall-a-(b-a)/2
		}
	}
	return time.Duration(offset)
}

// A tally counts steps back.
type tally struct {
	threads        int
	readings, back uint64
	worst          int64
}

func (t *tally) add(o tally) {
	t.threads += o.threads
	t.readings += o.readings
	t.back += o.back
	t.worst = max(t.worst, o.worst)
}

// stride is how many readings are made between two looks at the time.
const stride = 256

// countSteps looks for steps back for some time.
func countSteps(ctx context.Context, read func() int64, m Method, cpus []int, within time.Duration) tally {
	switch m {
	case OneCPU:
		return onCPU(cpus, 0, func() tally { return stepsAlone(ctx, read, within, func(int) {}) })
	case Migrating:
		return onCPU(cpus, 0, func() tally {
			return stepsAlone(ctx, read, within, func(round int) {
				// Errors are of CPUs that have gone offline: it stays where it is.
				_ = tsc.Move(cpus[round%len(cpus)])
			})
		})
	case Goroutines:
		return together(2*runtime.GOMAXPROCS(0), func(int) tally {
			return stepsAlone(ctx, read, within, func(int) { runtime.Gosched() })
		})
	}
	n := max(1, min(runtime.GOMAXPROCS(0), len(cpus), mostThreads))
	if len(cpus) == 0 {
		n = min(runtime.GOMAXPROCS(0), mostThreads)
	}
	var shared sharedMaximum
	shared.v.Store(math.MinInt64)
	return together(n, func(i int) tally {
		// CPUs that are far from each other: the list is in the order of cores.
		return onCPU(cpus, i*max(len(cpus), 1)/n, func() tally { return shared.steps(ctx, read, within) })
	})
}

// onCPU runs f on a pinned thread; on any, where threads cannot be pinned.
func onCPU(cpus []int, i int, f func() tally) tally {
	var t tally
	if i < len(cpus) {
		if tsc.OnCPU(cpus[i], func() error { t = f(); return nil }) == nil {
			return t
		}
	}
	done := make(chan tally)
	go func() {
		runtime.LockOSThread()
		done <- f()
	}()
	return <-done
}

// together runs f n times at the same time.
func together(n int, f func(i int) tally) tally {
	var sum tally
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			t := f(i)
			mu.Lock()
			defer mu.Unlock()
			sum.add(t)
		})
	}
	wg.Wait()
	return sum
}

// stepsAlone compares each reading with the one before it. move is called now and
// then.
func stepsAlone(ctx context.Context, read func() int64, within time.Duration, move func(round int)) tally {
	t := tally{threads: 1}
	s := newStopwatch()
	last := read()
	for round := 0; ; round++ {
		for range stride {
			now := read()
			if now < last {
				t.back++
				t.worst = max(t.worst, last-now)
			}
			last = now
		}
		t.readings += stride
		if s.ns() >= int64(within) || ctx.Err() != nil {
			return t
		}
		move(round)
	}
}

// A sharedMaximum is the largest reading of all threads.
type sharedMaximum struct {
	_ [64]byte
	v atomic.Int64
	_ [64]byte
}

// over, as the maximum, ends all threads.
const over = math.MaxInt64

// steps compares each reading with the maximum of all threads, and raises it.
//
// # Why no false step is counted
//
// A step is counted if a reading is smaller than a maximum that had been loaded
// before. That it was loaded before the clock is read, and not only written so,
// needs the CPU to wait for the load: the clock's own fence does that (LFENCE or
// RDTSCP on amd64, in the vDSO as in package tsc; ISB on arm64), on arm64 only
// together with a branch that depends on the value. The comparison with over is
// that branch. The clock without a fence is there to show what happens.
//
// In the other direction nothing is needed: the maximum is the reading itself, which
// cannot be stored before it is known.
func (m *sharedMaximum) steps(ctx context.Context, read func() int64, within time.Duration) tally {
	t := tally{threads: 1}
	s := newStopwatch()
	for {
		for range stride {
			seen := m.v.Load()
			if seen == over {
				return t
			}
			now := read()
			t.readings++
			if now < seen {
				t.back++
				t.worst = max(t.worst, seen-now)
				continue
			}
			for now > seen && !m.v.CompareAndSwap(seen, now) {
				seen = m.v.Load()
			}
		}
		if s.ns() >= int64(within) || ctx.Err() != nil {
			m.v.Store(over)
		}
	}
}
