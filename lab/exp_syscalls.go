package lab

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
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
	About: "System calls and context switches of this process while each group of timers that is started is due before the one before, so that the engine has to be woken to sleep anew; and then while they fire. System calls by the kernel's tracepoints, or by strace where they cannot be had, switches by getrusage, the rest as the engine counts itself. The program alone sleeps as often as while it starts the groups, and starts none. Medians of rounds in turn.",
	Takes: func(p Plan) time.Duration {
		return time.Duration(callRounds(p)*len(engines.All()))*(2*groupTime(p)+150*time.Millisecond) + time.Duration(callRounds(p))*groupTime(p)
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

const (
	// whileStarting are the voluntary switches until the last group has been started.
	whileStarting = "of these, while starting"

	// driverAlone is the program of workload without its timers.
	driverAlone = "program alone"
)

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

// callRounds is how often each engine has the workload, in turn with the others.
func callRounds(p Plan) int { return min(p.Rounds, 3) }

func runSyscalls(ctx context.Context, p Plan, r *Result) error {
	found := map[string]map[string][]float64{} // by engine and what
	lost := map[string]bool{}
	var alone []float64
	for range callRounds(p) {
		used := readSwitches()
		if err := driver(ctx, p); err != nil {
			return err
		}
		if n, _, err := used.since(); err == nil {
			alone = append(alone, float64(n))
		}
		for _, info := range engines.All() {
			if lost[info.Name] {
				continue
			}
			one, err := callsOf(ctx, p, r, info)
			if e := alive(ctx); e != nil {
				return e
			}
			if err != nil {
				lost[info.Name] = true
				r.skipOnce(info.Name, err)
				continue
			}
			if found[info.Name] == nil {
				found[info.Name] = map[string][]float64{}
			}
			for what, v := range one {
				found[info.Name][what] = append(found[info.Name][what], v)
			}
		}
	}
	in := fmt.Sprintf("%d groups of %d", groups(p), groupSize)
	if len(alone) > 0 {
		r.add(Figure{What: whileStarting, Who: driverAlone, Case: in, Unit: Count, Here: is(median(alone))})
	}
	plot := Plot{ID: "syscalls", Title: "System calls by engine", Kind: Bars, Unit: Count}
	for _, what := range slices.Concat(watched, otherCounts) {
		s := Series{Name: what}
		plot.Labels = nil
		for _, info := range engines.All() {
			list := found[info.Name][what]
			if found[info.Name] == nil {
				continue
			}
			plot.Labels = append(plot.Labels, info.Name)
			f := Figure{What: what, Who: info.Name, Case: in, Unit: Count, Here: is(median(slices.Clone(list)))}
			f.Published, f.By = publishedCalls(what, info.Name)
			if len(list) > 0 || f.Published != nil {
				r.add(f)
			}
			s.Values = append(s.Values, zeroOf(median(slices.Clone(list))))
		}
		if slices.Contains(watched, what) && slices.ContainsFunc(s.Values, func(v float64) bool { return v > 0 }) {
			plot.Series = append(plot.Series, s)
		}
	}
	if len(plot.Series) > 0 {
		r.Plots = append(r.Plots, plot)
	}
	return nil
}

// zeroOf is v, or 0 if that is no number.
func zeroOf(v float64) float64 {
	if math.IsNaN(v) {
		return 0
	}
	return v
}

const voluntary = "voluntary switches"

// otherCounts are those that are not of system calls by the kernel.
var otherCounts = []string{voluntary, whileStarting, "forced switches", "wake-ups, by the engine", "sleeps, by the engine", "sleeps while starting, by the engine", "futex waits, by the engine", "epoll waits, by the engine", "pipe breaks, by the engine", "threads of its own"}

// callsOf counts what one engine does for one workload.
func callsOf(ctx context.Context, p Plan, r *Result, info engine.Info) (map[string]float64, error) {
	e, err := started(ctx, info, 0)
	if err != nil {
		return nil, err
	}
	calls, err := countCalls(watched)
	switch {
	case err != nil:
		r.skipOnce("system calls", err)
	case calls.slow != "":
		r.skipOnce("the kernel's own counters", errors.New(calls.slow))
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
	waits, forced, serr := used.since()
	counts := calls.stop()
	if werr != nil {
		return nil, werr // The engine is left as it is.
	}
	if err := e.Close(); err != nil {
		r.skipOnce("closing "+info.Name, err)
	}
	found := map[string]float64{}
	if counts != nil {
		for _, name := range watched {
			found[name] = float64(counts[name])
		}
	}
	if serr == nil {
		found[voluntary], found[whileStarting], found[otherCounts[2]] = float64(waits), float64(starting), float64(forced)
	}
	if counted {
		for i, v := range []float64{
			float64(after.Wakeups - before.Wakeups), float64(after.Sleeps() - before.Sleeps()), float64(midway.Sleeps() - before.Sleeps()), float64(after.FutexWaits - before.FutexWaits), float64(after.EpollWaits - before.EpollWaits),
			float64(after.Breaks - before.Breaks), float64(after.Threads),
		} {
			found[otherCounts[3+i]] = v
		}
	}
	return found, nil
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
	slow string // by what means that delay the process; "" if they do not
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
