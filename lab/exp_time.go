package lab

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/detent-go/detent/lab/engine"
	"github.com/detent-go/detent/lab/engines"
)

// operations of the benchmarks, as package time's own sleep_test.go and tick_test.go
// had them: each does a thousand of what it is named after.
const operations = 1000

// A benchmark is one of package time's, over any engine.
type benchmark struct {
	name string
	op   func(e engine.Engine)
	part float64 // of the operations op does; 0: all
	slow bool    // thousands of times as slow with an engine of coarse ticks
	tiny bool    // with durations of 0 and 1 ns
}

var benchmarks = []benchmark{
	{name: "AfterFunc", slow: true, tiny: true, op: func(e engine.Engine) {
		n, done := operations, make(chan struct{})
		var f func()
		f = func() {
			if n--; n > 0 {
				e.AfterFunc(0, f)
				return
			}
			close(done)
		}
		e.AfterFunc(0, f)
		<-done
	}},
	{name: "After", slow: true, tiny: true, op: func(e engine.Engine) {
		for range operations {
			<-e.After(1)
		}
	}},
	{name: "Stop", op: func(e engine.Engine) {
		for range operations {
			e.NewTimer(time.Second).Stop()
		}
	}},
	{name: "SimultaneousAfterFunc", tiny: true, op: func(e engine.Engine) {
		var wg sync.WaitGroup
		wg.Add(operations)
		for range operations {
			e.AfterFunc(0, wg.Done)
		}
		wg.Wait()
	}},
	{name: "StartStop", op: func(e engine.Engine) {
		var timers [operations]engine.Timer
		for i := range timers {
			timers[i] = e.AfterFunc(time.Hour, nop)
		}
		for _, t := range timers {
			t.Stop()
		}
	}},
	{name: "Reset", op: func(e engine.Engine) {
		t := e.NewTimer(time.Hour)
		for range operations {
			t.Reset(time.Hour)
		}
		t.Stop()
	}},
	{name: "Sleep", tiny: true, op: func(e engine.Engine) {
		var wg sync.WaitGroup
		for range operations {
			wg.Go(func() { e.Sleep(1) })
		}
		wg.Wait()
	}},
	// A hundredth of the ticks: an engine that is never done with a ticker of 1 ns lets
	// nobody else run.
	{name: "Ticker", slow: true, tiny: true, part: 0.01, op: func(e engine.Engine) {
		t := e.NewTicker(time.Nanosecond)
		for range operations / 100 {
			<-t.C()
		}
		t.Stop()
	}},
}

func nop() {}

var timeBenchmarks = Experiment{
	Name:  "time",
	Title: "Package time's benchmarks, over every engine",
	About: "Nanoseconds for each operation of the benchmarks in package time's sleep_test.go, a thousand timers each, with hour-long timers pending on each P. Medians of rounds in turn. The articles' Go 1.13 is the engine buckets64, Go 1.14 is netpoll114.",
	Takes: func(p Plan) time.Duration {
		return time.Duration(len(p.Procs)*len(engines.All())*len(benchmarks)*p.Rounds) * (2*p.Window + 20*time.Millisecond)
	},
	run: runTime,
}

func runTime(ctx context.Context, p Plan, r *Result) error {
	for _, procs := range p.Procs {
		if err := benchmarksAt(ctx, p, r, procs); err != nil {
			return err
		}
	}
	if !slices.Contains(p.Procs, manyProcs) {
		r.unmeasured(manyProcs)
	}
	for _, b := range benchmarks {
		r.plotBars("time-"+b.name, b.name+", by engine and GOMAXPROCS", b.name)
	}
	return nil
}

// manyProcs is the GOMAXPROCS of the table that commit 6becb03334 of the Go project has.
const manyProcs = 12

// unmeasured adds the published figures of a GOMAXPROCS for which this machine has too
// few CPUs.
func (r *Result) unmeasured(procs int) {
	in := fmt.Sprintf("GOMAXPROCS %d", procs)
	for _, b := range benchmarks {
		for _, who := range []string{"buckets64", "netpoll114"} {
			f := Figure{What: b.name, Who: who, Case: in, Unit: Nanoseconds}
			f.Published, f.By = publishedTime("time", b.name, who, procs)
			r.add(f)
		}
	}
	r.skip(in, fmt.Errorf("needs %d CPUs, and the machine has %d", procs, runtime.NumCPU()))
}

// benchmarksAt measures at the present GOMAXPROCS.
func benchmarksAt(ctx context.Context, p Plan, r *Result, procs int) error {
	defer withProcs(procs)()
	in := fmt.Sprintf("GOMAXPROCS %d", procs)
	open, closeAll := openEngines(p, r, procs, p.Garbage*procs)
	defer closeAll()
	for _, b := range benchmarks {
		took := map[string][]float64{}
		for range p.Rounds {
			for _, e := range open {
				if err := alive(ctx); err != nil {
					return err
				}
				if e.lost || b.unfit(e.info) != "" {
					continue
				}
				v, err := within(ctx, func() float64 { return perOp(p.Window, func() { b.op(e.Engine) }) })
				if err != nil {
					e.lost = true
					r.skipOnce(fmt.Sprintf("%s of %s, %s, and what follows", b.name, e.info.Name, in), err)
					continue
				}
				if b.part > 0 {
					v /= b.part
				}
				took[e.info.Name] = append(took[e.info.Name], v)
			}
		}
		for _, e := range open {
			f := Figure{What: b.name, Who: e.info.Name, Case: in, Unit: Nanoseconds}
			f.Published, f.By = publishedTime("time", b.name, e.info.Name, procs)
			if len(took[e.info.Name]) > 0 {
				f.Here = is(median(took[e.info.Name]))
			} else if why := b.unfit(e.info); why != "" {
				r.skipOnce(b.name+" of "+e.info.Name, errors.New(why))
			}
			r.add(f)
		}
	}
	return nil
}

// unfit says why a benchmark is not for an engine, "" if it is.
func (b *benchmark) unfit(info engine.Info) string {
	switch {
	case b.slow && info.Grain >= time.Millisecond:
		return fmt.Sprintf("the engine fires on a grid of %v: the figure would be that", info.Grain)
	case b.name == "Reset" && !info.Can(engine.Resets):
		return info.Lacks[engine.Resets]
	case b.tiny && !info.Can(engine.AnyDuration):
		return info.Lacks[engine.AnyDuration]
	}
	return ""
}

// publishedTime returns what the articles printed for an engine: Go 1.13's figures
// for buckets64, Go 1.14's for netpoll114.
func publishedTime(pkg, name, who string, procs int) (*float64, string) {
	column, by := "", ""
	switch who {
	case "buckets64":
		column, by = "go113_ns_per_op", "Go 1.13"
	case "netpoll114":
		column, by = "go114_ns_per_op", "Go 1.14"
	default:
		return nil, ""
	}
	if v := published("go114_netpoll_timers", column, map[string]string{"package": pkg, "benchmark": name, "gomaxprocs": fmt.Sprint(procs)}); v != nil {
		return v, by
	}
	// The other table has one number of Ps alone.
	column = map[string]string{"buckets64": "before_ns_per_op", "netpoll114": "after_ns_per_op"}[who]
	if v := published("go114_time_12procs", column, map[string]string{"package": pkg, "benchmark": name, "gomaxprocs": fmt.Sprint(procs)}); v != nil {
		return v, by
	}
	return nil, ""
}

// opened is an engine that runs.
type opened struct {
	engine.Engine
	info    engine.Info
	garbage []engine.Timer
	lost    bool // something of it still runs, for a timer never fired: not to be touched
	full    int  // of so many there is no room
}

// openEngines starts every engine for so many Ps, with garbage timers pending, and
// notes those that do not run here.
func openEngines(p Plan, r *Result, procs, garbage int) (list []*opened, closeAll func()) {
	for _, info := range engines.All() {
		e, err := info.New(procs)
		if err != nil {
			r.skipOnce(info.Name, err)
			continue
		}
		o := &opened{Engine: e, info: info}
		if err := o.litter(p, garbage); err != nil {
			r.skipOnce(info.Name, err)
			o.close(r)
			continue
		}
		list = append(list, o)
	}
	return list, func() {
		for _, o := range list {
			if !o.lost {
				o.close(r)
			}
		}
	}
}

// litter starts n timers that are due in an hour.
func (o *opened) litter(p Plan, n int) error {
	f := p.fill(n)
	for i := range n {
		if err := f.made(i); err != nil {
			return err
		}
		o.garbage = append(o.garbage, o.AfterFunc(time.Hour+time.Duration(i)*time.Microsecond, nop))
	}
	return nil
}

func (o *opened) close(r *Result) {
	for _, t := range o.garbage {
		t.Stop()
	}
	o.garbage = nil
	if err := o.Close(); err != nil {
		r.skip("closing "+o.info.Name, err)
	}
}

// skipOnce notes what could not be measured, unless that is noted already.
func (r *Result) skipOnce(what string, err error) {
	line := what + ": " + err.Error()
	for _, s := range r.Skipped {
		if s == line {
			return
		}
	}
	r.Skipped = append(r.Skipped, line)
}

// plotBars plots the figures of one kind: a bar for each engine and case, and one
// for what was published.
func (r *Result) plotBars(id, title, what string) {
	p := Plot{ID: id, Title: title, Kind: Bars, Unit: Nanoseconds}
	here, there := Series{Name: "here"}, Series{Name: "published"}
	for _, f := range r.Figures {
		if f.What != what || f.Here == nil && f.Published == nil {
			continue
		}
		p.Unit = f.Unit
		p.Labels = append(p.Labels, f.Who+", "+f.Case)
		value := func(v *float64) float64 {
			if v == nil {
				return 0
			}
			return *v
		}
		here.Values, there.Values = append(here.Values, value(f.Here)), append(there.Values, value(f.Published))
	}
	if len(p.Labels) > 0 {
		p.Series = []Series{here, there}
		r.Plots = append(r.Plots, p)
	}
}
