package accuracy

import (
	"context"
	"fmt"
	"slices"
	"time"

	uber "go.uber.org/ratelimit"
	"golang.org/x/time/rate"

	"github.com/detent-go/detent/cmd/internal/machine"
)

// A Pace is what became of a rate that a limiter was asked for.
type Pace struct {
	Limiter string `json:"limiter"`
	Way     string `json:"way"`
	Asked   int    `json:"asked_per_s"`
	// Achieved is events a second, the median of the rounds.
	Achieved float64 `json:"achieved_per_s"`
	// The gaps between one event and the next, of all rounds.
	GapP1  int64 `json:"gap_p1_ns"`
	GapP50 int64 `json:"gap_p50_ns"`
	GapP99 int64 `json:"gap_p99_ns"`
	// CPU is the CPU time that the process took for each second, in
	// milliseconds; negative where the system does not tell.
	CPU float64 `json:"cpu_ms_per_s"`
}

// A limiter is a rate limiter made to wait by sleep: take returns when the next
// event may happen.
type limiter struct {
	name string
	make func(perSecond int, sleep func(time.Duration)) (take func())
}

// clock is what go.uber.org/ratelimit takes the time and its sleeps from.
type clock struct{ sleep func(time.Duration) }

func (clock) Now() time.Time          { return time.Now() }
func (c clock) Sleep(d time.Duration) { c.sleep(d) }

// limiters hold no slack and no burst: what they make up for a late event is
// theirs, and the same for every way.
var limiters = []limiter{
	{"golang.org/x/time/rate, Reserve and sleep", func(perSecond int, sleep func(time.Duration)) func() {
		l := rate.NewLimiter(rate.Limit(perSecond), 1)
		return func() { sleep(l.Reserve().Delay()) }
	}},
	{"go.uber.org/ratelimit, WithClock", func(perSecond int, sleep func(time.Duration)) func() {
		l := uber.New(perSecond, uber.WithClock(clock{sleep}))
		return func() { l.Take() }
	}},
}

// pace runs every limiter at every rate on the ways of the given names.
func pace(ctx context.Context, plan Plan, ways []opened, step func(string)) ([]*Pace, error) {
	var paces []*Pace
	for _, l := range limiters {
		for _, perSecond := range plan.Rates {
			step(fmt.Sprintf("%s, %d a second", l.name, perSecond))
			runs := make([]paceRun, len(ways))
			for range plan.Rounds {
				for k, w := range ways {
					if ctx.Err() != nil {
						return paces, context.Cause(ctx)
					}
					runs[k].round(l.make(perSecond, w.sleep), plan.Window)
				}
			}
			for k, w := range ways {
				p := &Pace{Limiter: l.name, Way: w.Name, Asked: perSecond}
				runs[k].fill(p)
				paces = append(paces, p)
			}
		}
	}
	return paces, nil
}

// paceRun is what the rounds of one limiter on one way have found.
type paceRun struct {
	gaps     []int64
	achieved []float64
	cpu      []float64
}

// round takes events for the window, two at least.
func (r *paceRun) round(take func(), window time.Duration) {
	take() // the first waits for nothing
	used := machine.ReadUsage()
	begin := time.Now()
	last, events := begin, 0
	for last.Sub(begin) < window || events == 0 {
		take()
		t := time.Now()
		r.gaps = append(r.gaps, int64(t.Sub(last)))
		last = t
		events++
	}
	after := machine.ReadUsage()
	seconds := last.Sub(begin).Seconds()
	r.achieved = append(r.achieved, float64(events)/seconds)
	if used.Err == nil && after.Err == nil {
		r.cpu = append(r.cpu, float64(after.CPU-used.CPU)/1e6/seconds)
	}
}

func (r *paceRun) fill(p *Pace) {
	slices.Sort(r.gaps)
	p.GapP1, p.GapP50, p.GapP99 = quantile(r.gaps, 0.01), quantile(r.gaps, 0.5), quantile(r.gaps, 0.99)
	p.Achieved = middle(r.achieved)
	p.CPU = -1
	if len(r.cpu) > 0 {
		p.CPU = middle(r.cpu)
	}
}

// middle returns the median of v, the lower one of two, and sorts v.
func middle(v []float64) float64 {
	slices.Sort(v)
	return v[(len(v)-1)/2]
}
