package lab

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// modelAssumptions are those of the model, in words.
const modelAssumptions = "the runtime's monitor looks at all Ps every 10 ms and a little; it asks the goroutine of a P to yield that it has seen there for 10 ms or more, by a signal that arrives at once; the P then looks at its timers; nine of ten times the monitor gets a CPU as soon as it wakes up, and the tenth time it waits for the computing thread's slice of up to 3 ms to end, which the kernel sees at a tick; with NO_HZ_FULL the tick, of HZ 1000, returns within a period once two threads want a CPU."

const (
	// goSlice is after what time the runtime's monitor preempts a goroutine, and
	// goMonitor the longest time between two looks of the monitor (runtime/proc.go:
	// forcePreemptNS, and sysmon's delay); its sleep is late by monitorLate.
	goSlice     = 10 * time.Millisecond
	goMonitor   = 10 * time.Millisecond
	monitorLate = 60 * time.Microsecond
	// contended is how often the monitor finds no CPU when it wakes up, and kernelSlice
	// how long the thread that has it may stay at the most.
	contended   = 0.1
	kernelSlice = 3 * time.Millisecond
)

// modelSleep is how long the goroutine sleeps, for a number from 0 to 1: more than the
// grain of the runtime's own sleep, and for a whole slice.
func modelSleep(u float64) time.Duration {
	return time.Millisecond + time.Duration(u*float64(10*time.Millisecond))
}

// A tickModel is a kernel with a tick of a length; hz is 0 for NO_HZ_FULL.
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

// simulate returns how late n goroutines run that have slept while their P computes,
// sorted. A sleep begins at 0, and so does the slice of the goroutine that computes.
func (m tickModel) simulate(n int) []time.Duration {
	rng := rand.New(rand.NewPCG(1, 2)) // the same in every run
	uniform := func(d time.Duration) time.Duration { return time.Duration(rng.Int64N(int64(d))) }
	tick := time.Second / time.Duration(max(m.hz, 1))
	if m.hz == 0 {
		tick = time.Millisecond
	}
	waits := make([]time.Duration, n)
	for i := range waits {
		due := modelSleep(rng.Float64())
		ticks := uniform(tick) // when the first is
		// A look is when the monitor has a CPU; its next sleep begins then.
		look := uniform(goMonitor)
		next := func() {
			look += goMonitor + monitorLate
			if rng.Float64() >= contended {
				return
			}
			look += uniform(kernelSlice)
			late := (look - ticks) % tick
			if late < 0 {
				late += tick
			}
			look += tick - late
		}
		for {
			// The first look at a slice tells when the monitor has seen it begin.
			seen := look
			for next(); look-seen < goSlice; next() {
			}
			if look >= due {
				waits[i] = look - due
				break
			}
			next() // The next slice has begun meanwhile.
		}
	}
	slices.Sort(waits)
	return waits
}
