package lab

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

var preemption = Experiment{
	Name:  "preemption",
	Title: "How long a goroutine waits for a busy P, and the kernel's tick",
	About: "Measured: how late a goroutine runs that is ready while every P spins. The model: what the kernel's tick adds, for HZ 100, 250, 1000 and without a tick, under the assumptions that the runtime's monitor asks a goroutine to yield after 10 ms, by a signal that is handled at once where the CPU is free, and at the end of a kernel time slice where another thread is running there.",
	Takes: func(p Plan) time.Duration { return preemptionTime(p) },
	run: func(ctx context.Context, p Plan, r *Result) error {
		stop := spinners(1)
		var waits []time.Duration
		for begin := time.Now(); len(waits) == 0 || time.Since(begin) < preemptionTime(p); {
			if err := alive(ctx); err != nil {
				stop()
				return err
			}
			// One that has slept is ready when its timer is due, and the timer of a busy P
			// is looked at when that P schedules.
			d := time.Millisecond + rand.N(10*time.Millisecond)
			from := time.Now()
			time.Sleep(d)
			waits = append(waits, max(time.Since(from)-d, 0))
		}
		stop()
		slices.Sort(waits)
		add := func(who string, sorted []time.Duration, pub *float64) {
			for _, q := range []struct {
				name string
				q    float64
			}{{"p10", 0.1}, {"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}} {
				r.add(Figure{What: "wait for a P, " + q.name, Who: who, Case: "one spinning goroutine a P", Unit: Nanoseconds, Here: is(quantile(sorted, q.q))})
			}
			// The article states jitter as plus and minus: half of what lies between
			// the tenth and the ninetieth percentile.
			r.add(Figure{What: "jitter, +-", Who: who, Case: "one spinning goroutine a P", Unit: Nanoseconds, Published: pub,
				Here: is((quantile(sorted, 0.9) - quantile(sorted, 0.1)) / 2)})
		}
		add("measured", waits, nil)
		plot := Plot{ID: "preemption", Title: r.Title, Kind: Tails, Unit: Nanoseconds, Series: []Series{{Name: "measured", Points: tail(waits)}}}
		for _, m := range tickModels {
			waits := m.simulate(20_000)
			add(m.name(), waits, publishedClock("C5", m.published))
			plot.Series = append(plot.Series, Series{Name: m.name(), Points: tail(waits)})
		}
		r.Plots = append(r.Plots, plot)
		return nil
	},
}

func preemptionTime(p Plan) time.Duration {
	return time.Duration(p.Rounds) * max(20*p.Window, 20*time.Millisecond)
}

// A tickModel is a kernel with a tick of a length; 0 for none while a thread runs
// alone on its CPU.
type tickModel struct {
	hz        int
	published string // the case of the article
}

var tickModels = []tickModel{
	{100, "CONFIG_HZ=100 (tick 10 ms)"}, {250, ""}, {1000, "CONFIG_HZ=1000 (tick 1 ms)"}, {0, "NO_HZ_FULL"},
}

func (m tickModel) name() string {
	if m.hz == 0 {
		return "model, NO_HZ_FULL"
	}
	return fmt.Sprintf("model, HZ=%d", m.hz)
}

const (
	// goSlice is after what time the runtime's monitor preempts a goroutine, and
	// goMonitor the longest time between two looks of the monitor (runtime/proc.go:
	// forcePreemptNS, and sysmon's delay).
	goSlice   = 10 * time.Millisecond
	goMonitor = 10 * time.Millisecond
	// shared is how often another thread of the machine is on the CPU when the
	// signal arrives, and kernelSlice for how long it may stay at the least; the
	// tick is when the kernel looks.
	shared      = 0.1
	kernelSlice = 3 * time.Millisecond
)

// simulate returns waits of goroutines that become ready at random times while the
// one that runs is at a random point of its slice, sorted.
func (m tickModel) simulate(n int) []time.Duration {
	rng := rand.New(rand.NewPCG(1, 2)) // the same in every run
	uniform := func(d time.Duration) time.Duration { return time.Duration(rng.Int64N(int64(d))) }
	waits := make([]time.Duration, n)
	for i := range waits {
		// What is left of the slice, and until the monitor next looks.
		wait := uniform(goSlice) + uniform(goMonitor)
		if rng.Float64() < shared {
			wait += kernelSlice
			if m.hz > 0 {
				// The kernel looks whether the slice is over at ticks alone.
				tick := time.Second / time.Duration(m.hz)
				wait += uniform(tick)
			}
			// Without a tick the kernel has a timer for the end of the slice as soon as
			// two threads want the CPU: it adds nothing.
		}
		waits[i] = wait
	}
	slices.Sort(waits)
	return waits
}
