package lab

import (
	"context"
	"math"
	"runtime"
	"time"

	"github.com/detent-go/detent/clock"
	"github.com/detent-go/detent/lab/internal/cgoclock"
)

// cgoBatch is how often C reads the clock in one call, where the way into C is not to
// be counted.
const cgoBatch = 1000

var rawClock = Experiment{
	Name:  "raw",
	Title: "CLOCK_MONOTONIC_RAW, with and without cgo",
	About: "Nanoseconds for each reading of CLOCK_MONOTONIC_RAW on a locked thread: by the vDSO from Go, by a call of C for each reading, by C alone, and by system call; with time.Now to compare. The least of rounds in turn.",
	Takes: func(p Plan) time.Duration { return time.Duration(5*p.Rounds) * p.Window },
	run: func(ctx context.Context, p Plan, r *Result) error {
		const in = "CLOCK_MONOTONIC_RAW"
		ways := []reader{
			{"clock.Raw, without cgo", func() int64 { return clock.Raw.Nanos() }, 1, nil},
			{"time.Now, to compare", func() int64 { return time.Now().UnixNano() }, 1, nil},
		}
		if systemRaw != nil {
			ways = append(ways, reader{"unix.ClockGettime", systemRaw, 1, nil})
		}
		if err := cgoclock.Available(); err != nil {
			r.skip("with cgo", err)
		} else {
			ways = append(ways, reader{"cgo, a call for each", cgoclock.Raw, 1, nil},
				reader{"C alone, a thousand in a call", func() int64 { return cgoclock.Raws(cgoBatch) }, cgoBatch, nil})
		}
		took, err := readInTurn(ctx, p, ways)
		if err != nil {
			return err
		}
		for i, w := range ways {
			r.add(Figure{What: "reading", Who: w.name, Case: in, Unit: Nanoseconds, Here: is(took[i])})
		}
		if cgoclock.Available() == nil && clock.Raw.Source() != clock.PackageTime {
			r.add(Figure{What: "readings out of order", Who: "both", Case: in + " by Go and by C in turn", Here: is(float64(disagreements()))})
		}
		r.plotBars("raw", r.Title, "reading")
		return nil
	},
}

// A reader is a way to read a clock: per readings in each call. If it needs somebody
// who works for it, start has that one begin; nobody else shall pay for it.
type reader struct {
	name  string
	read  func() int64
	per   int
	start func() (stop func())
}

// begin starts who works for the reader.
func (w *reader) begin() (stop func()) {
	if w.start == nil {
		return func() {}
	}
	return w.start()
}

// looks is how many windows readInTurn makes of one: what else the machine does is
// not in all of them.
const looks = 5

// readInTurn returns for each reader what a reading takes in nanoseconds, on a thread
// that the goroutine keeps: the least of all rounds, for nothing makes a reading
// cheaper than it is.
func readInTurn(ctx context.Context, p Plan, list []reader) ([]float64, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	took := make([]float64, len(list))
	for i := range took {
		took[i] = math.Inf(1)
	}
	for range looks * p.Rounds {
		for i, w := range list {
			if err := alive(ctx); err != nil {
				return nil, err
			}
			var v float64
			stop := w.begin()
			if w.per > 1 {
				v = perLongCall(p.Window/looks, func() { keep.i = w.read() }) / float64(w.per)
			} else {
				v = perCall(p.Window/looks, func() { keep.i = w.read() })
			}
			stop()
			took[i] = min(took[i], v)
		}
	}
	return took, nil
}

// disagreements reads the clock from Go and by C in turn, and counts readings that are
// smaller than the one before: none, if it is one clock.
func disagreements() int {
	readings := make([]int64, 0, 3000)
	for range cap(readings) / 3 {
		readings = append(readings, clock.Raw.Nanos(), cgoclock.Raw(), clock.Raw.Nanos())
	}
	n := 0
	for i := range readings {
		if i > 0 && readings[i] < readings[i-1] {
			n++
		}
	}
	return n
}
