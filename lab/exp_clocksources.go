package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/detent-go/detent/clock"
	"github.com/detent-go/detent/probe"
)

var clocksources = Experiment{
	Name:  "clocksources",
	Title: "HPET, the ACPI PM timer and others against the TSC",
	About: "What reading the time costs with each clocksource that the kernel offers, and how late a thread is that sleeps for 100 us while every CPU is busy. A clocksource is the whole machine's: another one than that in use is tried as root and when asked to (--switch-clocksource), in turn with the rest, and the one in use is put back. The article's figures are of interrupts by the timer of that name, on 48 CPUs.",
	Takes: func(p Plan) time.Duration {
		n := 1
		if _, all, err := (clocksource{clocksourceDir}).read(); err == nil && p.Switch {
			n = len(all)
		}
		return time.Duration(n*p.Rounds) * (3*p.Window + time.Duration(sourceSleeps(p))*200*time.Microsecond + 40*time.Millisecond)
	},
	run: func(ctx context.Context, p Plan, r *Result) error {
		return clocksource{clocksourceDir}.measure(ctx, p, r)
	},
}

// period is that of the article's timers.
const period = 100 * time.Microsecond

func sourceSleeps(p Plan) int { return 5 * p.Sleeps }

// articleSources are those that the article names, in the words of its figures.
var articleSources = map[string]string{"hpet": "HPET", "acpi_pm": "ACPI PM timer"}

// errNotAsked is why another clocksource is not tried.
var errNotAsked = errors.New("not in use, and the change would be for everybody on this machine: as root, with --switch-clocksource, it is tried and put back")

func (c clocksource) measure(ctx context.Context, p Plan, r *Result) error {
	current, available, err := c.read()
	if err != nil {
		return fmt.Errorf("this system does not tell of clocksources: %w", err)
	}
	for _, name := range []string{"tsc", "hpet", "acpi_pm"} {
		if !slices.Contains(available, name) {
			r.skip(name, errors.New("this machine's kernel does not offer it"))
		}
	}
	seen := map[string]*sourceFigures{}
	switch {
	case !p.Switch:
		for _, name := range available {
			if name != current {
				r.skip(name, errNotAsked)
			}
		}
		err = c.rounds(ctx, p, []string{current}, func(string) error { return nil }, seen)
	default:
		err = c.guarded(func() error { return c.rounds(ctx, p, available, c.use, seen) })
		if errors.Is(err, os.ErrPermission) {
			r.skip("the others than "+current, err)
			err = c.rounds(ctx, p, []string{current}, func(string) error { return nil }, seen)
		}
	}
	for name := range articleSources {
		if seen[name] == nil {
			seen[name] = &sourceFigures{} // for what is published
		}
	}
	for _, name := range append(available, "hpet", "acpi_pm") {
		if x := seen[name]; x != nil {
			x.add(r, name)
			delete(seen, name)
		}
	}
	r.plotBars("clocksources", "What reading the time costs, by clocksource", readingNow)
	return err
}

// sourceFigures are what the rounds found with one clocksource.
type sourceFigures struct {
	now, mono, call []float64
	late            []probe.Distribution
	failed          string // why there are no sleeps
}

// rounds measures with each of the clocksources in turn.
func (c clocksource) rounds(ctx context.Context, p Plan, names []string, use func(string) error, seen map[string]*sourceFigures) error {
	for range p.Rounds {
		for _, name := range names {
			if err := alive(ctx); err != nil {
				return err
			}
			if err := use(name); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			x := seen[name]
			if x == nil {
				x = &sourceFigures{}
				seen[name] = x
			}
			if err := x.measure(ctx, p); err != nil {
				return err
			}
		}
	}
	return nil
}

func (x *sourceFigures) measure(ctx context.Context, p Plan) error {
	for range looks {
		x.now = append(x.now, perCall(p.Window/looks, func() { keep.t = time.Now() }))
		x.mono = append(x.mono, perCall(p.Window/looks, func() { keep.i = clock.Mono.Nanos() }))
		if systemRaw != nil {
			x.call = append(x.call, perCall(p.Window/looks, func() { keep.i = systemRaw() }))
		}
	}
	// A P more than there are spinning goroutines: the CPUs are busy, and the sleeper has
	// not to wait for the Go scheduler.
	defer withProcs(runtime.NumCPU() + 1)()
	stop := spinning(runtime.NumCPU())
	defer stop()
	const way = probe.SleepPrecise
	data, err := probe.MeasureSleeps(ctx, probe.SleepOptions{Requested: period, Count: sourceSleeps(p), Time: 3 * time.Second, Ways: []string{way}})
	if err != nil {
		return err
	}
	switch w := data.Ways[0]; {
	case w.Error != "":
		x.failed = w.Error
	default:
		x.late = append(x.late, w.Lateness)
	}
	return nil
}

const (
	readingNow = "time.Now"
	lateMean   = "lateness, mean"
	lateP99    = "lateness, p99"
)

// add adds the figures: the least cost of a reading, the medians of the rounds' sleeps; and what the article has printed.
func (x *sourceFigures) add(r *Result, name string) {
	reading := func(what string, list []float64) {
		if len(list) > 0 {
			r.add(Figure{What: what, Who: name, Case: "one thread", Unit: Nanoseconds, Here: is(slices.Min(list))})
		}
	}
	reading(readingNow, x.now)
	reading("clock.Mono", x.mono)
	reading("a system call, CLOCK_MONOTONIC_RAW", x.call)
	if x.failed != "" {
		r.skip("sleeps with "+name, errors.New(x.failed))
	}
	var mean, tail []float64
	for _, d := range x.late {
		mean, tail = append(mean, float64(d.Mean)), append(tail, float64(d.P99))
	}
	for _, f := range []struct {
		what, statistic string
		here            []float64
	}{{lateMean, "mean", mean}, {lateP99, "p99 jitter", tail}} {
		y := Figure{What: f.what, Who: name, Case: lateCase(), Unit: Nanoseconds}
		if len(f.here) > 0 {
			y.Here = is(median(f.here))
		}
		if label := articleSources[name]; label != "" {
			y.Published = published("clock_figures", "value", map[string]string{"id": "C3", "case": label, "statistic": f.statistic})
		}
		if y.Here != nil || y.Published != nil {
			r.add(y)
		}
	}
}

func lateCase() string { return fmt.Sprintf("100 µs, %d busy CPUs", runtime.NumCPU()) }
