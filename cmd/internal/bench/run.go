package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/detent-go/detent/cmd/internal/machine"
)

// A Scenario is one part of the benchmark: some rows that need the same
// set-up.
type Scenario struct {
	Name  string // what --run matches
	Title string // what stands above its rows
	play  func(*stage) error
}

// Scenarios returns all of them, in the order in which they run.
func Scenarios() []Scenario {
	return []Scenario{
		{"startstop", "start and stop a timer of an hour or two", playStartStop},
		{"reset", "reset a pending timer to later", playReset},
		{"churn", "worst case while two goroutines start, reset and stop", playChurn},
		{"storm", "many timers due at once", playStorm},
		{"spread", "many timers due over a longer time", playSpread},
		{"memory", "memory of a pending timer, its handle kept", playMemory},
		{"gc", "runtime.GC over pending timers, less that of an empty heap", playGC},
		{"idle", "pending timers while nothing happens", playIdle},
		{"sleep", "Sleep(50us) on an idle machine", playSleep},
		{"pace", "20,000 timers a second", playPace},
		{"load", "Sleep(100us) while the Go scheduler is busy", playLoad},
		{"lane", "a timer of 1 ms on a lane, once a load has lasted a while", playLane},
		{"scaling", "start and stop on more than one P", playScaling},
	}
}

// Select returns the scenarios whose names match re; nil matches all.
func Select(re *regexp.Regexp) ([]Scenario, error) {
	all := Scenarios()
	if re == nil {
		return all, nil
	}
	var names []string
	var some []Scenario
	for _, sc := range all {
		names = append(names, sc.Name)
		if re.MatchString(sc.Name) {
			some = append(some, sc)
		}
	}
	if len(some) == 0 {
		return nil, fmt.Errorf("no scenario matches %q; there are %s", re, strings.Join(names, ", "))
	}
	return some, nil
}

// A Config is one run.
type Config struct {
	Plan      Plan
	Procs     int // GOMAXPROCS of the workers
	Scenarios []Scenario
	Spawn     Spawner
	// Progress is told what is being measured, from one goroutine.
	Progress func(Event)
}

// An Event is what is being measured now.
type Event struct {
	Scenario      Scenario
	Index, Total  int // of the scenario, from 1
	Round, Rounds int // Round 0: setting up
}

// Run measures. It always returns a report of what it has measured; the
// report says if the end of ctx stopped it, and what failed.
func Run(ctx context.Context, cfg Config) *Report {
	begin := time.Now()
	r := &Report{
		Schema:  Schema,
		Machine: machine.Read(),
		Settings: Settings{
			Form: cfg.Plan.Form, Rounds: cfg.Plan.Rounds, Procs: cfg.Procs, Scenarios: []string{},
		},
		Rows: []*Row{}, Missing: []Missing{}, Notes: []string{},
	}
	for i, sc := range cfg.Scenarios {
		r.Settings.Scenarios = append(r.Settings.Scenarios, sc.Name)
		if ctx.Err() == nil {
			r.play(ctx, cfg, sc, i)
		}
	}
	if ctx.Err() != nil {
		r.Stopped = cmp.Or(context.Cause(ctx), ctx.Err()).Error()
	}
	r.finish(time.Since(begin))
	return r
}

// play runs one scenario; what goes wrong in it ends that one only.
func (r *Report) play(ctx context.Context, cfg Config, sc Scenario, i int) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &stage{
		ctx: ctx, plan: cfg.Plan, procs: cfg.Procs, spawn: cfg.Spawn, report: r, name: sc.Name,
		progress: func(round int) {
			if cfg.Progress != nil {
				cfg.Progress(Event{Scenario: sc, Index: i + 1, Total: len(cfg.Scenarios), Round: round, Rounds: cfg.Plan.Rounds})
			}
		},
	}
	s.progress(0)
	err := sc.play(s)
	if err = errors.Join(err, s.end()); err != nil && ctx.Err() == nil {
		r.missing(Missing{Scenario: sc.Name, Case: "the rest of it", Reason: err.Error(), Failed: true})
	}
}
