package lab

import (
	"context"
	"fmt"
	"time"

	"github.com/detent-go/detent/lab/engine"
	"github.com/detent-go/detent/lab/engines"
)

// watched are the system calls that the articles counted, and those that engines
// sleep in today.
var watched = []string{"futex", "nanosleep", "clock_nanosleep", "epoll_wait", "epoll_pwait", "epoll_pwait2", "clock_gettime", "timerfd_settime", "write"}

var systemCalls = Experiment{
	Name:  "syscalls",
	Title: "What an engine asks of the kernel",
	About: "System calls and context switches of this process while each group of timers that is started is due before the one before, so that the engine has to be woken to sleep anew; and then while they fire. System calls by the kernel's tracepoints, switches by getrusage, the rest as the engine counts itself. The program alone sleeps as often as while it starts the groups, and starts none.",
	Takes: func(p Plan) time.Duration {
		return time.Duration(len(engines.All()))*(2*groupTime(p)+150*time.Millisecond) + groupTime(p)
	},
	run: runSyscalls,
}

// The article's program starts groups of timers that are due in long times, each
// group earlier than the last.
const groupSize = 100

func groups(p Plan) int {
	if p.Short {
		return 50
	}
	return 500
}

// groupTime is how long the groups take: one every 2 ms.
const groupEvery = 2 * time.Millisecond

func groupTime(p Plan) time.Duration { return time.Duration(groups(p)) * groupEvery }

// whileStarting are the voluntary switches until the last group has been started.
const whileStarting = "of these, while starting"

// driverAlone is the program of workload without its timers.
const driverAlone = "program alone"

// driver sleeps as often as workload does while it starts the groups. While they fire
// workload waits for them alone, and all that happens is the engine's doing.
func driver(ctx context.Context, p Plan) error {
	for range groups(p) {
		if err := alive(ctx); err != nil {
			return err
		}
		time.Sleep(groupEvery)
	}
	return nil
}

// workload starts the groups, calls begun, and waits until all timers have fired.
func workload(ctx context.Context, e engine.Engine, p Plan, begun func()) error {
	n := groups(p)
	// All groups are due after the last has been started.
	fired := make(chan struct{}, n*groupSize)
	// Each is due two intervals sooner after its start than the one before: also where
	// a sleep takes a millisecond longer than was asked for, it is due earlier.
	last := 2*groupTime(p) + 50*time.Millisecond
	for g := range n {
		if err := alive(ctx); err != nil {
			return err
		}
		d := last - time.Duration(g)*groupEvery*2
		for range groupSize {
			e.AfterFunc(d, func() { fired <- struct{}{} })
		}
		time.Sleep(groupEvery)
	}
	begun()
	_, err := within(ctx, func() struct{} {
		for range n * groupSize {
			<-fired
		}
		return struct{}{}
	})
	return err
}

func runSyscalls(ctx context.Context, p Plan, r *Result) error {
	in := fmt.Sprintf("%d groups of %d", groups(p), groupSize)
	plot := Plot{ID: "syscalls", Title: "System calls by engine", Kind: Bars, Unit: Count}
	series := map[string]*Series{}
	alone := readSwitches()
	if err := driver(ctx, p); err != nil {
		return err
	}
	if voluntary, _, err := alone.since(); err == nil {
		r.add(Figure{What: whileStarting, Who: driverAlone, Case: in, Unit: Count, Here: is(float64(voluntary))})
	}
	for _, info := range engines.All() {
		e, err := started(ctx, info, 0)
		if err != nil {
			r.skipOnce(info.Name, err)
			continue
		}
		calls, err := countCalls(watched)
		if err != nil {
			r.skipOnce("system calls", err)
		}
		before, counted := e.Counters()
		used := readSwitches()
		var starting int64
		var midway engine.Counters
		werr := workload(ctx, e, p, func() {
			starting, _, _ = used.since()
			midway, _ = e.Counters()
		})
		after, _ := e.Counters()
		voluntary, forced, serr := used.since()
		counts := calls.stop()
		if err := alive(ctx); err != nil {
			return err
		}
		if werr != nil {
			r.skipOnce(info.Name, werr)
			continue
		}
		cerr := e.Close()
		if cerr != nil {
			r.skip("closing "+info.Name, cerr)
		}
		add := func(what string, here float64) {
			f := Figure{What: what, Who: info.Name, Case: in, Unit: Count, Here: is(here)}
			f.Published, f.By = publishedCalls(what, info.Name)
			r.add(f)
		}
		plot.Labels = append(plot.Labels, info.Name)
		for _, name := range watched {
			if counts == nil {
				break
			}
			add(name, float64(counts[name]))
			if series[name] == nil {
				series[name] = &Series{Name: name}
			}
			series[name].Values = append(series[name].Values, float64(counts[name]))
		}
		if serr == nil {
			add("voluntary switches", float64(voluntary))
			add(whileStarting, float64(starting))
			add("forced switches", float64(forced))
		}
		if counted {
			add("wake-ups, by the engine", float64(after.Wakeups-before.Wakeups))
			add("sleeps, by the engine", float64(after.Sleeps()-before.Sleeps()))
			add("sleeps while starting, by the engine", float64(midway.Sleeps()-before.Sleeps()))
			add("futex waits, by the engine", float64(after.FutexWaits-before.FutexWaits))
			add("epoll waits, by the engine", float64(after.EpollWaits-before.EpollWaits))
			add("pipe breaks, by the engine", float64(after.Breaks-before.Breaks))
			add("threads of its own", float64(after.Threads))
		}
	}
	for _, name := range watched {
		if s := series[name]; s != nil {
			plot.Series = append(plot.Series, *s)
		}
	}
	if len(plot.Series) > 0 {
		r.Plots = append(r.Plots, plot)
	}
	return nil
}

// publishedCalls are those of the article's program, whose size is not known: they
// show which calls there are rather than how many.
func publishedCalls(name, who string) (*float64, string) {
	version := map[string]string{"buckets64": "1.13", "netpoll114": "1.14"}[who]
	if version == "" {
		return nil, ""
	}
	if v := published("syscalls_113_114", "calls", map[string]string{"go_version": version, "syscall": name}); v != nil {
		return v, "Go " + version
	}
	return nil, ""
}

// callCounter counts system calls of this process. The nil counter has counted
// nothing.
type callCounter struct {
	read func() (map[string]uint64, error)
	end  func()
}

// stop returns the counts, nil if there are none.
func (c *callCounter) stop() map[string]uint64 {
	if c == nil {
		return nil
	}
	defer c.end()
	counts, err := c.read()
	if err != nil {
		return nil
	}
	return counts
}
