package lab

import (
	"context"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/detent-go/detent/clock"
)

var counterClock = Experiment{
	Name:  "rdtsc",
	Title: "A clock made of the cycle counter, on a locked thread",
	About: "The article reads RDTSC on a goroutine that is locked to its thread. Three ways to have that clock: to read it on the locked thread itself; to ask the thread for the time by a channel; to load the time that the thread keeps storing, which costs that thread's CPU. What a reading costs, how old it is when it is there, by CLOCK_MONOTONIC, and whether it stepped back.",
	Takes: func(p Plan) time.Duration { return time.Duration(5*p.Rounds)*p.Window + ageTime(p)*3 },
	run:   runCounterClock,
}

// ageTime is for how long the ages of a way's readings are looked at.
func ageTime(p Plan) time.Duration { return time.Duration(p.Rounds) * p.Window }

const counterIn = "cycle counter, scaled"

func runCounterClock(ctx context.Context, p Plan, r *Result) error {
	var k clock.TSC
	for begin := time.Now(); !k.Health().Trusted && time.Since(begin) < 200*time.Millisecond; {
		if err := alive(ctx); err != nil {
			return err
		}
		k.Ordered() // It measures the counter while it is used.
		time.Sleep(time.Millisecond)
	}
	if h := k.Health(); !h.Trusted {
		r.skip("the counter", h.Err)
		return h.Err
	}
	server, keeper := &timeServer{k: &k}, &timeKeeper{k: &k}
	ways := []reader{
		{"locked thread, unordered", k.Unordered, 1, nil},
		{"locked thread, ordered", k.Ordered, 1, nil},
		{"asked by a channel", server.ask, 1, server.start},
		{"loaded, a thread stores it", keeper.now.Load, 1, keeper.start},
		{"time.Now", func() int64 { return int64(time.Since(origin)) }, 1, nil},
	}
	took, err := readInTurn(ctx, p, ways)
	if err != nil {
		return err
	}
	for i, w := range ways {
		f := Figure{What: "reading", Who: w.name, Case: counterIn, Unit: Nanoseconds, Here: is(took[i])}
		switch i {
		case 0:
			f.Published, f.By = publishedClock("C9", "RDTSC on a locked thread"), "RDTSC on a locked thread"
		case len(ways) - 1:
			f.Published, f.By = published("clock_figures", "value", map[string]string{"id": "C9", "case": "time.Now"}), "time.Now"
		}
		r.add(f)
	}
	plot := Plot{ID: "rdtsc", Title: "How old a reading is", Kind: Tails, Unit: Nanoseconds}
	for _, w := range ways[:len(ways)-1] {
		ages, back, err := ages(ctx, p, w)
		if err != nil {
			return err
		}
		for _, q := range []struct {
			name string
			q    float64
		}{{"age p50", 0.5}, {"age p99", 0.99}, {"age, most", 1}} {
			r.add(Figure{What: q.name, Who: w.name, Case: counterIn, Unit: Nanoseconds, Here: is(max(quantile(ages, q.q), 0))})
		}
		r.add(Figure{What: "steps back", Who: w.name, Case: counterIn, Here: is(float64(back))})
		r.add(Figure{What: "readings", Who: w.name, Case: counterIn, Here: is(float64(len(ages)))})
		plot.Series = append(plot.Series, Series{Name: w.name, Points: tail(ages)})
	}
	r.Plots = append(r.Plots, plot)
	r.plotBars("rdtsc-cost", "What a reading costs", "reading")
	return nil
}

// origin is what time.Now is compared with.
var origin = time.Now()

// A timeServer is a locked thread that answers who asks for the time.
type timeServer struct {
	k         *clock.TSC
	questions chan struct{}
	answers   chan int64
}

func (s *timeServer) start() (stop func()) {
	s.questions, s.answers = make(chan struct{}), make(chan int64)
	go func() {
		runtime.LockOSThread() // It ends with the goroutine.
		for range s.questions {
			s.answers <- s.k.Unordered()
		}
		close(s.answers)
	}()
	return func() { close(s.questions); <-s.answers }
}

func (s *timeServer) ask() int64 {
	s.questions <- struct{}{}
	return <-s.answers
}

// A timeKeeper is a locked thread that stores the time again and again.
type timeKeeper struct {
	k   *clock.TSC
	now atomic.Int64
}

func (s *timeKeeper) start() (stop func()) {
	var over atomic.Bool
	begun, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		s.now.Store(s.k.Unordered())
		close(begun)
		for !over.Load() {
			s.now.Store(s.k.Unordered())
		}
	}()
	<-begun
	return func() { over.Store(true); <-done }
}

// ages reads a clock that follows CLOCK_MONOTONIC, and returns how old each reading
// was when it was there, sorted, and how many were smaller than the one before.
func ages(ctx context.Context, p Plan, w reader) (list []time.Duration, back int, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer w.begin()()
	last := int64(0)
	for begin := time.Now(); len(list) == 0 || time.Since(begin) < ageTime(p); {
		if err := alive(ctx); err != nil {
			return nil, 0, err
		}
		for range 100 {
			v := w.read()
			list = append(list, time.Duration(clock.Mono.Nanos()-v))
			if v < last {
				back++
			}
			last = v
		}
	}
	slices.Sort(list)
	return list, back, nil
}
