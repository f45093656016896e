package lab

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/detent-go/detent/clock"
	"github.com/detent-go/detent/probe"
)

// probed runs one check of package probe.
func probed[T any](ctx context.Context, p Plan, check string) (T, error) {
	var none T
	o := probe.Options{Checks: []string{check}, Effort: probe.Normal}
	if p.Short {
		o.Effort = probe.Quick
	}
	report, err := probe.Run(ctx, o)
	if err != nil {
		return none, err
	}
	d, ok := report.Results[0].Data.(T)
	if !ok {
		return none, fmt.Errorf("check %s: %w", check, report.Results[0].Err)
	}
	return d, nil
}

func probeTime(p Plan) time.Duration {
	if p.Short {
		return 700 * time.Millisecond
	}
	return 3 * time.Second
}

var clockReadings = Experiment{
	Name:  "clocks",
	Title: "What reading a clock costs",
	About: "Nanoseconds for each reading, by the vDSO and by system call, and of the bare cycle counter: the least of many rounds.",
	Takes: probeTime,
	run: func(ctx context.Context, p Plan, r *Result) error {
		d, err := probed[*probe.ClocksData](ctx, p, "clocks")
		if err != nil {
			return err
		}
		plot := Plot{ID: "clocks", Title: r.Title, Kind: Bars, Unit: Nanoseconds}
		least, call := Series{Name: "as Go reads it"}, Series{Name: "by system call"}
		add := func(what, who string, v float64, pub *float64, by string) {
			r.add(Figure{What: what, Who: who, Case: "one thread", Unit: Nanoseconds, Here: is(v), Published: pub, By: by})
		}
		for _, c := range d.Clocks {
			who := c.Name
			if c.Package != "" {
				who = c.Package + "." + c.Name
			}
			var pub *float64
			by := ""
			switch who {
			case "time.Now":
				pub, by = publishedClock("C11", "vDSO in use"), "the article on time.Now"
			case "clock.Mono":
				pub, by = publishedClock("C4", "vDSO reading the TSC"), "clock_gettime"
			}
			add("reading", who, c.Cost.Least, pub, by)
			plot.Labels = append(plot.Labels, who)
			least.Values = append(least.Values, c.Cost.Least)
			v := 0.0
			if c.Syscall != nil {
				v = c.Syscall.Least
				if who == "clock.Mono" {
					add("system call", who, v, publishedClock("C4", "system call fallback"), "clock_gettime")
					// Without a vDSO time.Now reads two clocks.
					add("two system calls", "time.Now without a vDSO", 2*v, publishedClock("C11", "vDSO not usable"), "the article on time.Now")
				} else {
					add("system call", who, v, nil, "")
				}
			}
			call.Values = append(call.Values, v)
		}
		if d.Counter != nil {
			add("reading", "cycle counter, unordered", d.Counter.Least, publishedClock("C9", "RDTSC on a locked thread"), "RDTSC on a locked thread")
			plot.Labels = append(plot.Labels, "cycle counter, unordered")
			least.Values, call.Values = append(least.Values, d.Counter.Least), append(call.Values, 0)
		}
		plot.Series = []Series{least, call}
		r.Plots = append(r.Plots, plot)
		return nil
	},
}

func publishedClock(id, in string) *float64 {
	return published("clock_figures", "value", map[string]string{"id": id, "case": in})
}

var backwardSteps = Experiment{
	Name:  "steps",
	Title: "Whether time steps back",
	About: "Readings that were smaller than one taken before, by threads that stay on a CPU, that move, and that share their largest reading. The article counted 10 to 500 in a million calls of time.Now.",
	Takes: probeTime,
	run: func(ctx context.Context, p Plan, r *Result) error {
		d, err := probed[*probe.StepsData](ctx, p, "steps")
		if err != nil {
			return err
		}
		for _, c := range d.Counts {
			in := string(c.Method)
			f := Figure{What: "readings", Who: c.Clock, Case: in, Here: is(float64(c.Readings))}
			r.add(f)
			back := Figure{What: "steps back in a million", Who: c.Clock, Case: in, Here: is(float64(c.Back) / max(float64(c.Readings), 1) * 1e6)}
			if c.Clock == "time.Now" {
				back.Published = published("clock_figures", "value", map[string]string{"id": "C1", "statistic": "backward calls (low)"})
			}
			r.add(back)
			r.add(Figure{What: "worst step back", Who: c.Clock, Case: in, Unit: Nanoseconds, Here: is(float64(c.Worst))})
		}
		r.add(Figure{What: "wall clock set meanwhile", Who: "somebody", Case: "during the run", Unit: Nanoseconds, Here: is(float64(d.WallMoved))})
		return nil
	},
}

var counterOffsets = Experiment{
	Name:  "offsets",
	Title: "The cycle counters of different CPUs",
	About: "How far apart the counters of two CPUs may be, by messages between them: an offset below the bound is not distinguishable from none. Jumps of the counter against CLOCK_MONOTONIC_RAW. And by how much the difference of two readings of time.Now wobbles, with runtime.Gosched between them, on goroutines that have two CPUs to themselves: its mean distance from the median, without the hundredth that is farthest off.",
	Takes: probeTime,
	run: func(ctx context.Context, p Plan, r *Result) error {
		d, err := probed[*probe.CounterData](ctx, p, "counter")
		if err != nil {
			return err
		}
		hz := d.Frequency
		r.add(Figure{What: "frequency", Who: "cycle counter", Case: "by CLOCK_MONOTONIC_RAW", Unit: "Hz", Here: is(hz)})
		r.add(Figure{What: "jumps", Who: "cycle counter", Case: fmt.Sprintf("%d samples", d.Samples), Here: is(float64(len(d.Jumps)))})
		r.add(Figure{What: "slew", Who: "CLOCK_MONOTONIC against RAW", Case: "during the run", Unit: "ppb", Here: is(d.Slew)})
		r.add(Figure{What: "slew error", Who: "CLOCK_MONOTONIC against RAW", Case: "during the run", Unit: "ppb", Here: is(d.SlewError)})
		far := map[probe.Relation]bool{}
		for _, g := range d.Groups {
			far[g.Relation] = true
			r.add(Figure{What: "offset bound", Who: string(g.Relation), Case: fmt.Sprintf("%d pairs", g.Pairs), Unit: Nanoseconds, Here: is(g.Bound), Published: publishedOffset(g.Relation)})
			r.add(Figure{What: "offset bound, cycles", Who: string(g.Relation), Case: fmt.Sprintf("%d pairs", g.Pairs), Unit: Cycles, Here: is(g.Bound * hz / 1e9), Published: publishedCycles(g.Relation)})
			r.add(Figure{What: "pairs certainly apart", Who: string(g.Relation), Case: fmt.Sprintf("%d pairs", g.Pairs), Here: is(float64(g.Apart))})
			r.add(Figure{What: "least round trip", Who: string(g.Relation), Case: fmt.Sprintf("%d pairs", g.Pairs), Unit: Nanoseconds, Here: is(g.RoundTrip)})
		}
		if !far[probe.OtherSocket] && !far[probe.SameSocket] {
			r.add(Figure{What: "offset bound", Who: string(probe.OtherSocket), Case: noPairs, Unit: Nanoseconds, Published: publishedOffset(probe.OtherSocket)})
			r.add(Figure{What: "offset bound, cycles", Who: string(probe.OtherSocket), Case: noPairs, Unit: Cycles, Published: publishedCycles(probe.OtherSocket)})
			r.skip("CPUs of two NUMA nodes", errors.New("this machine has one"))
		}
		if !far[probe.SameCore] {
			r.skip("threads of a core", errors.New("no two CPUs are known to share a core"))
		}
		pairsOfReadings(r, hz, p.Window)
		if flags, err := probed[*probe.TSCData](ctx, p, "tsc"); err != nil {
			r.skip("the flags of the CPU", err)
		} else {
			for _, f := range []struct {
				name string
				set  bool
			}{{"constant_tsc", flags.Constant}, {"nonstop_tsc", flags.Nonstop}} {
				v := 0.0
				if f.set {
					v = 1
				}
				r.add(Figure{What: "flag", Who: f.name, Case: flagCase, Here: is(v)})
			}
		}
		return wobbles(ctx, p, r, d)
	},
}

const flagCase = "of the CPU"

const noPairs = "no pairs here"

// publishedOffset is the article's between NUMA nodes, in nanoseconds.
func publishedOffset(relation probe.Relation) *float64 {
	if relation != probe.OtherSocket && relation != probe.SameSocket {
		return nil
	}
	return published("clock_figures", "value", map[string]string{"id": "C7", "statistic": "mean"})
}

// publishedCycles is the other article's, in cycles.
func publishedCycles(relation probe.Relation) *float64 {
	in := "same NUMA node"
	if relation == probe.OtherSocket || relation == probe.SameSocket {
		in = "across NUMA nodes"
	}
	return published("clock_figures", "value", map[string]string{"id": "C2", "case": in, "statistic": "max"})
}

// readPairs is how many pairs of readings the article looked at.
const readPairs = 1000

// morePairs is the case of the pairs after those, which go on until some were
// interrupted.
const morePairs = "the pairs after those"

// pairsOfReadings looks for jumps between two readings in a row, as the article
// does: more than 10,000 cycles.
func pairsOfReadings(r *Result, hz float64, window time.Duration) {
	var k clock.TSC
	k.Ordered()
	threshold := *publishedClock("C8", "1000 read pairs")
	count := func(in string, enough func(pairs int) bool) {
		pairs, over, worst := 0, 0, 0.0
		for ; !enough(pairs); pairs++ {
			a := k.Ordered()
			b := k.Ordered()
			cycles := float64(b-a) * hz / 1e9
			worst = max(worst, cycles)
			if cycles > threshold {
				over++
			}
		}
		r.add(Figure{What: "pairs of readings", Who: "cycle counter", Case: in, Here: is(float64(pairs))})
		r.add(Figure{What: "pairs of readings over the threshold", Who: "cycle counter", Case: in, Here: is(float64(over))})
		r.add(Figure{What: "largest difference", Who: "cycle counter", Case: in, Unit: Cycles, Here: is(worst)})
	}
	count(fmt.Sprintf("%d pairs", readPairs), func(pairs int) bool { return pairs == readPairs })
	begin := time.Now()
	count(morePairs, func(pairs int) bool { return pairs%1000 == 0 && time.Since(begin) > 5*window })
}
