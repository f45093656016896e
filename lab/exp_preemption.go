package lab

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/detent-go/detent/probe"
)

var preemption = Experiment{
	Name:  "preemption",
	Title: "How long a goroutine waits for a busy P, and the kernel's tick",
	About: "Measured: how late a goroutine runs that has slept for 1 to 11 ms while every P computes. The model simulates the same for kernels with HZ 100, 250, 1000 and with NO_HZ_FULL: " + modelAssumptions,
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
			d := modelSleep(rand.Float64())
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
				r.add(Figure{What: "wait for a P, " + q.name, Who: who, Case: preemptionCase, Unit: Nanoseconds, Here: is(quantile(sorted, q.q))})
			}
			// The article states jitter as plus and minus: half of what lies between
			// the tenth and the ninetieth percentile.
			r.add(Figure{What: jitter, Who: who, Case: preemptionCase, Unit: Nanoseconds, Published: pub,
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
		r.add(Figure{What: "sleeps", Who: "measured", Case: "how many", Here: is(float64(len(waits)))})
		tick, err := probed[*probe.TickData](ctx, p, "tick")
		if err != nil {
			r.skip("the kernel's tick", err)
			return nil
		}
		if tick.HZ > 0 {
			r.add(Figure{What: "HZ", Who: "this kernel", Case: tickCase, Here: is(float64(tick.HZ))})
		}
		full := 0.0
		if tick.Mode == probe.TickFull && tick.Full != "" {
			full = 1
		}
		r.add(Figure{What: "NO_HZ_FULL", Who: "this kernel", Case: tickCase, Here: is(full)})
		return nil
	},
}

const (
	preemptionCase = "one spinning goroutine a P"
	tickCase       = "in use"
	jitter         = "jitter, +-"
)

func preemptionTime(p Plan) time.Duration {
	return time.Duration(p.Rounds) * max(20*p.Window, 20*time.Millisecond)
}

// decideC5 compares what was measured with what the article has for a kernel like this
// one, if it has any: a part that does not hold refutes the whole, and a part that holds
// does not confirm it.
func decideC5(r *Report) (Verdict, string) {
	v, why, ok := needAll(r, key{"preemption", jitter, "measured", preemptionCase},
		key{"preemption", jitter, tickModel{hz: 100}.name(), preemptionCase}, key{"preemption", jitter, tickModel{hz: 1000}.name(), preemptionCase},
		key{"preemption", jitter, tickModel{}.name(), preemptionCase})
	if !ok {
		return NotRun, why
	}
	model := fmt.Sprintf("the model has %s at HZ=100, %s at HZ=1000, %s with NO_HZ_FULL: the runtime's own 10 ms are most of it, whatever the tick", ns(v[1]), ns(v[2]), ns(v[3]))
	x := r.result("preemption")
	hz, _ := x.here("HZ", "this kernel", tickCase)
	full, _ := x.here("NO_HZ_FULL", "this kernel", tickCase)
	of, in := "", ""
	for _, m := range tickModels {
		if m.published != "" && (m.hz == 0 && full == 1 || m.hz > 0 && full == 0 && hz == float64(m.hz)) {
			of, in = m.name(), m.published
		}
	}
	if of == "" {
		return NotTestable, fmt.Sprintf("needs kernels with HZ=100, HZ=1000 and NO_HZ_FULL. This one, with HZ=%.0f: %s measured; %s", hz, ns(v[0]), model)
	}
	low := *published("clock_figures", "value", map[string]string{"id": "C5", "case": in})
	high := low
	if y := published("clock_figures", "value", map[string]string{"id": "C5", "case": in, "statistic": "+- (high)"}); y != nil {
		high = *y
	}
	because := fmt.Sprintf("on this kernel, %s: %s measured, and the article has %s; %s", in, ns(v[0]), ns(low), model)
	if v[0] < low/2 || v[0] > 2*high {
		return Refuted, because
	}
	return NotTestable, because + ". That part holds; the others need kernels of theirs"
}
