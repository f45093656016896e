package probe

import (
	"context"
	"errors"
	"math"
	"runtime"
	"time"

	"github.com/detent-go/detent/clock"
	"github.com/detent-go/detent/internal/hostfs"
	"github.com/detent-go/detent/internal/tsc"
)

// CounterData is the data of the check "counter": the CPU's cycle counter (the TSC of
// amd64, CNTVCT_EL0 of arm64) against the kernel's unsteered clock, and on each CPU
// against the others.
type CounterData struct {
	// Frequency is the counter's, in Hz, by CLOCK_MONOTONIC_RAW over the time Over,
	// and FrequencyError how wrong it may be at most.
	Frequency      float64       `json:"frequency_hz"`
	FrequencyError float64       `json:"frequency_error_hz"`
	Over           time.Duration `json:"over_ns"`
	// Step is that of the counter, in nanoseconds, as far as readings show it: no
	// smaller than a reading takes.
	Step float64 `json:"step_ns"`
	// Stated is the frequency that the machine states, and StatedBy where; 0 if it
	// does not.
	Stated   float64 `json:"stated_hz,omitempty"`
	StatedBy string  `json:"stated_by,omitempty"`
	// Slew is by how much faster than CLOCK_MONOTONIC_RAW the steered clock
	// CLOCK_MONOTONIC ran, in billionths, and SlewError how wrong that may be.
	Slew      float64 `json:"slew_ppb"`
	SlewError float64 `json:"slew_error_ppb"`

	// Samples of counter and CLOCK_MONOTONIC_RAW were compared, and Jumps is where
	// the two came apart by more than any drift explains. Longest is the longest
	// time between two samples: a jump that was undone within it is not seen.
	Samples int           `json:"samples"`
	Longest time.Duration `json:"longest_ns"`
	Jumps   []Jump        `json:"jumps"`

	CPUs   []Place       `json:"cpus"`
	Plan   string        `json:"plan"` // which pairs were to be compared
	Pairs  []PairOffset  `json:"pairs"`
	Groups []OffsetGroup `json:"groups"`
	// Missed is the number of pairs that the time did not suffice for.
	Missed int `json:"missed,omitempty"`
	// Coarse says that GOMAXPROCS is 1, so that one thread went from CPU to CPU
	// itself: bounds are of microseconds.
	Coarse bool `json:"coarse,omitempty"`

	// Clocksource is the kernel's, and Trusted says that it is this counter.
	Clocksource string `json:"clocksource,omitempty"`
	Trusted     bool   `json:"trusted"`
}

// A Place says where a CPU is in the machine.
type Place = hostfs.Place

// A Jump is of the counter against CLOCK_MONOTONIC_RAW.
type Jump struct {
	At time.Duration `json:"at_ns"` // since the check began
	By time.Duration `json:"by_ns"` // the counter ahead if positive
	// Within is the time in which it happened.
	Within time.Duration `json:"within_ns"`
}

// counterTime is how long the counter is looked at, and exchanges how many messages
// make a burst.
func counterTime(e Effort) (d time.Duration, exchanges int) {
	switch e {
	case Quick:
		return 300 * time.Millisecond, 200
	case Thorough:
		return time.Minute, 1000
	}
	return 1500 * time.Millisecond, 500
}

const (
	// sampling is the time between two samples.
	sampling = time.Millisecond

	// pairTime is what the comparison of two idle CPUs takes, besides the
	// exchanges, and exchangeTime what one of those does.
	pairTime     = 250 * time.Microsecond
	exchangeTime = 500 * time.Nanosecond

	// mostBursts of a pair are kept.
	mostBursts = 64
)

// measureCounter looks at the counter for some time. Bursts of messages between the
// pairs alternate with samples of the reference clock.
func measureCounter(ctx context.Context, e *Env) (*CounterData, error) {
	if err := tsc.Check(); err != nil {
		return nil, err
	}
	cpus, err := tsc.CPUs()
	if err != nil {
		return nil, err
	}
	within, exchanges := counterTime(e.Effort)
	d := &CounterData{CPUs: placesOf(e, cpus), Coarse: runtime.GOMAXPROCS(0) < 2}
	d.Stated, d.StatedBy = tsc.Stated()
	if source, err := hostfs.ReadClocksource(e.Root); err == nil {
		d.Clocksource = source.Current
		d.Trusted = source.Current == "tsc" || source.Current == "arch_sys_counter"
	}

	s := newStopwatch()
	grain := tsc.Grain()
	take := func(c clock.Clock) tsc.Sample { return tsc.Take(c.Nanos, grain, 16, 0) }
	mono := take(clock.Mono)
	samples := []tsc.Sample{take(clock.Raw)}
	sampled := s.ns()

	// Two rounds at least have to fit, for an offset that is found to be confirmed.
	most := int(within / 2 / (pairTime + time.Duration(exchanges)*exchangeTime))
	var pairs []pair
	pairs, d.Plan = planPairs(d.CPUs, most)
	bursts := make([][]burst, len(pairs))
	errs := make([]error, len(pairs))
	tried := 0
	for round := 0; ctx.Err() == nil && s.ns() < int64(within); round++ {
		roundBegan := s.ns()
		for i, p := range pairs {
			if ctx.Err() != nil || s.ns() >= int64(within) {
				break
			}
			tried = max(tried, i+1)
			if round > 0 && errs[i] != nil && !errors.Is(errs[i], tsc.ErrBusy) {
				continue
			}
			xs, err := tsc.Converse(d.CPUs[p.from].CPU, d.CPUs[p.to].CPU, exchanges)
			if errs[i] = err; err == nil {
				if b, ok := burstOf(float64(s.ns())/1e9, xs, grain); ok {
					bursts[i] = keep(bursts[i], b)
				}
			}
			if s.ns()-sampled >= int64(sampling) {
				samples = append(samples, take(clock.Raw))
				sampled = s.ns()
			}
		}
		// Rounds are spread over the time.
		pause := min(max(int64(within)/mostBursts-(s.ns()-roundBegan), int64(sampling)), int64(within)-s.ns())
		for until := s.ns() + pause; s.ns() < until && ctx.Err() == nil; {
			time.Sleep(time.Duration(min(int64(sampling), max(until-s.ns(), 0))))
			samples = append(samples, take(clock.Raw))
			sampled = s.ns()
		}
	}
	lastMono := take(clock.Mono)
	samples = append(samples, take(clock.Raw))
	d.Missed = len(pairs) - tried
	d.follow(samples, mono, lastMono)

	hz := d.Frequency
	if hz == 0 {
		return d, errors.Join(ended(ctx), errors.New("the counter does not count"))
	}
	d.Step = float64(grain) / hz * 1e9
	for i, p := range pairs[:tried] {
		o := newPair(d.CPUs, p)
		switch {
		case len(bursts[i]) > 0:
		case errs[i] != nil:
			o.Error = errs[i].Error()
		default:
			o.Error = "the counters jumped between messages"
		}
		d.Pairs = append(d.Pairs, offsetOf(o, bursts[i], hz))
	}
	d.Groups = groupOffsets(d.Pairs)
	return d, ended(ctx)
}

// keep appends a burst; when there are too many, it lets go of every other one.
func keep(bursts []burst, b burst) []burst {
	if len(bursts) >= mostBursts {
		n := 0
		for i := 0; i < len(bursts); i += 2 {
			bursts[n] = bursts[i]
			n++
		}
		bursts = bursts[:n]
	}
	return append(bursts, b)
}

// follow evaluates samples of CLOCK_MONOTONIC_RAW, and the first and last one of
// CLOCK_MONOTONIC.
func (d *CounterData) follow(samples []tsc.Sample, mono, lastMono tsc.Sample) {
	first, last := samples[0], samples[len(samples)-1]
	d.Samples = len(samples)
	d.Over = time.Duration(last.Ref - first.Ref)
	d.Jumps = jumpsOf(samples)
	for i := 1; i < len(samples); i++ {
		d.Longest = max(d.Longest, time.Duration(samples[i].Ref-samples[i-1].Ref))
	}
	if len(d.Jumps) > 0 {
		// The rate is that of the longest stretch without a jump.
		first, last = longestStretch(samples, d.Jumps)
	}
	hz, hzErr := tsc.Fit(first, last)
	if math.IsInf(hzErr, 0) {
		return
	}
	d.Frequency, d.FrequencyError = hz, hzErr
	if monoHz, monoErr := tsc.Fit(mono, lastMono); monoHz > 0 && !math.IsInf(monoErr, 0) && len(d.Jumps) == 0 {
		// A faster clock makes the counter look slower.
		d.Slew = (hz/monoHz - 1) * 1e9
		d.SlewError = (hzErr/hz + monoErr/monoHz) * 1e9
	}
}

const (
	// jumpRate is the largest difference of rates that is no jump: more than a
	// hypervisor steers the clock that it gives to its guests by.
	jumpRate = 1000e-6
	// jumpNoise is allowed for on top, in nanoseconds.
	jumpNoise = 1000
)

// jumpsOf compares each sample with the one before it, by the median rate.
func jumpsOf(samples []tsc.Sample) []Jump {
	rates := make([]float64, 0, len(samples)) // ticks a nanosecond
	for i := 1; i < len(samples); i++ {
		if ns := samples[i].Ref - samples[i-1].Ref; ns > 0 {
			rates = append(rates, float64(int64(middle(samples[i])-middle(samples[i-1])))/float64(ns))
		}
	}
	rate := median(rates)
	if rate <= 0 {
		return nil
	}
	var jumps []Jump
	for i := 1; i < len(samples); i++ {
		a, b := samples[i-1], samples[i]
		ns := float64(b.Ref - a.Ref)
		off := float64(int64(middle(b)-middle(a)))/rate - ns
		width := float64(a.Width()+b.Width()+2*max(b.Grain, 1)) / 2 / rate
		if math.Abs(off) > width+jumpRate*math.Abs(ns)+jumpNoise {
			jumps = append(jumps, Jump{
				At: time.Duration(b.Ref - samples[0].Ref), By: time.Duration(off), Within: time.Duration(ns),
			})
		}
	}
	return jumps
}

func middle(s tsc.Sample) uint64 { return s.From + s.Width()/2 }

// longestStretch returns the first and the last sample of the longest time without
// a jump.
func longestStretch(samples []tsc.Sample, jumps []Jump) (first, last tsc.Sample) {
	first, last = samples[0], samples[0]
	began := 0
	for i, s := range samples {
		for _, j := range jumps {
			if j.At == time.Duration(s.Ref-samples[0].Ref) {
				began = i
			}
		}
		if s.Ref-samples[began].Ref > last.Ref-first.Ref {
			first, last = samples[began], s
		}
	}
	return first, last
}
