package serve

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/detent-go/detent/probe"
	"github.com/detent-go/detent/trace"
)

const (
	// watchEvery is how often the processes are looked at, and maxShown how many of
	// them are shown.
	watchEvery = time.Second
	maxShown   = 20

	// manyCalls a second, to read a clock that the vDSO would serve, are a finding:
	// at 200 ns each, a thousandth of a CPU.
	manyCalls = 5000
	// maxCulprits is how many findings about processes there are at most.
	maxCulprits = 10
)

// A Watcher watches all processes with package trace. It is a collector of what it
// sees, added up over the machine: no series is a process's.
type Watcher struct {
	log *slog.Logger
	// Started is called when the tracer is attached: from then on its privileges
	// suffice that Drop leaves.
	Started func()

	mu    sync.Mutex
	sums  map[*prometheus.Desc]map[string]float64 // by label; of what has been seen so far
	hooks []trace.Hook
	lost  map[string]uint64
}

// NewWatcher returns a watcher that has not begun.
func NewWatcher(log *slog.Logger) *Watcher {
	w := &Watcher{log: log, sums: map[*prometheus.Desc]map[string]float64{}}
	for _, d := range []*prometheus.Desc{callsDesc, armedDesc, expiredDesc, partDesc, lateDesc} {
		w.sums[d] = map[string]float64{}
	}
	return w
}

// Watch is Options.Watch.
func (w *Watcher) Watch(ctx context.Context, show func([]Process, []probe.Finding)) error {
	t, err := trace.Start(ctx, &trace.Options{
		Features: trace.WatchClockCalls | trace.WatchLateness | trace.WatchTimers | trace.WatchClockChanges,
	})
	if err != nil {
		return err
	}
	defer t.Close()
	if w.Started != nil {
		w.Started()
	}
	go func() {
		for e := range t.Events() { // ends with Close
			switch e.Kind {
			case trace.EventClocksource, trace.EventStep, trace.EventSlew, trace.EventMessage:
				w.log.Info("clock", "event", e.String())
			}
		}
	}()
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	var before *trace.Snapshot
	for {
		now, err := t.Snapshot()
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		d := now
		if before != nil {
			d = now.Since(before)
		}
		w.add(d, now)
		if before != nil {
			show(processesOf(d), culprits(d))
		}
		before = now
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// processesOf returns those that read the clock by system calls, arm timers or are
// woken most.
func processesOf(d *trace.Snapshot) []Process {
	seconds := d.Elapsed.Seconds()
	if seconds <= 0 {
		return nil
	}
	var list []Process
	for _, p := range d.Processes {
		x := Process{PID: p.PID, Name: p.Comm}
		for _, c := range p.ClockCalls {
			x.ClockCalls += float64(c.Count) / seconds
		}
		for _, t := range p.Timers {
			x.Timers += float64(t.Armed) / seconds
			x.Wakeups += float64(t.Woken) / seconds
		}
		for _, l := range p.Lateness {
			x.Late = max(x.Late, l.Total.Quantile(0.99))
		}
		if x.ClockCalls+x.Timers+x.Wakeups > 0 {
			list = append(list, x)
		}
	}
	weight := func(p Process) float64 { return p.ClockCalls + 10*p.Timers + 10*p.Wakeups }
	slices.SortFunc(list, func(a, b Process) int {
		return cmp.Or(-cmp.Compare(weight(a), weight(b)), cmp.Compare(a.PID, b.PID))
	})
	return list[:min(len(list), maxShown)]
}

// A cause is what is wrong with a process for a reason, and what to do.
type cause struct {
	says     string
	severity probe.Severity
	remedy   []string
}

var causes = map[trace.Reason]cause{
	trace.ReasonClocksource: {"the kernel's clocksource cannot be read without one", probe.Critical,
		[]string{"see detent doctor: it is the same for all processes of this host"}},
	trace.ReasonNoVDSO: {"the kernel has given it no vDSO", probe.Critical,
		[]string{"look whether the kernel was started with vdso=0: grep -w vdso /proc/cmdline"}},
	trace.ReasonHidden: {"it has a vDSO and was not told of it", probe.Critical,
		[]string{"look at what starts it: a tracer, a sandbox or a checkpoint tool that changes the auxiliary vector; start it without that"}},
	trace.ReasonUnusable: {"its runtime does not use the vDSO that it has", probe.Warning,
		[]string{"update the language's runtime, or the kernel"}},
	trace.ReasonOldVDSO: {"this kernel's vDSO does not serve that clock", probe.Notice,
		[]string{"update the kernel, or read another clock"}},
	trace.ReasonDirect: {"it makes the system call itself", probe.Warning,
		[]string{"read the clock by time.Now, or by clock.Mono and its like, in place of x/sys/unix.ClockGettime or syscall(2)"}},
}

// culprits are findings about processes that make many system calls to read a clock
// which they need not make, the worst first.
func culprits(d *trace.Snapshot) []probe.Finding {
	type call struct {
		p    trace.Process
		c    trace.ClockCalls
		rate float64
	}
	var calls []call
	for _, p := range d.Processes {
		for _, c := range p.ClockCalls {
			if rate := float64(c.Count) / d.Elapsed.Seconds(); rate >= manyCalls && causes[c.Reason].says != "" {
				calls = append(calls, call{p, c, rate})
			}
		}
	}
	slices.SortFunc(calls, func(a, b call) int { return cmp.Or(-cmp.Compare(a.rate, b.rate), cmp.Compare(a.p.PID, b.p.PID)) })
	var list []probe.Finding
	for _, x := range calls[:min(len(calls), maxCulprits)] {
		why := causes[x.c.Reason]
		f := probe.Finding{
			ID: "process.clock-system-calls", Severity: why.severity, Confidence: probe.Certain,
			Title:  fmt.Sprintf("%s (PID %d) makes %.0f system calls a second to read the clock %s: %s", x.p.Comm, x.p.PID, x.rate, x.c.Clock, why.says),
			Detail: "Through the vDSO a reading takes a tenth of the time.",
			Evidence: []probe.Evidence{
				{Name: x.c.Call + ", " + x.c.Clock, Value: fmt.Sprintf("%.0f a second", x.rate), Source: "the kernel's tracepoint"},
				{Name: "reason", Value: string(x.c.Reason), Source: "trace"},
			},
			Remedy: why.remedy,
		}
		for _, e := range x.c.Evidence {
			f.Evidence = append(f.Evidence, probe.Evidence{Name: e.Name, Value: e.Value, Source: e.Source})
		}
		for i, s := range x.c.Stacks {
			for _, frame := range s.Frames {
				if frame.Func != "" && i < 3 {
					f.Evidence = append(f.Evidence, probe.Evidence{Name: "from", Value: where(frame), Source: strconv.FormatUint(s.Count, 10) + " samples"})
					break
				}
			}
		}
		list = append(list, f)
	}
	return list
}

func where(f trace.Frame) string {
	if f.File != "" {
		return fmt.Sprintf("%s (%s:%d)", f.Func, f.File, f.Line)
	}
	return f.Func
}

var (
	callsDesc   = watcherDesc("clock_calls_total", "System calls of all processes that read a clock, by why they are made.", "reason")
	armedDesc   = watcherDesc("timers_armed_total", "Timers armed by all processes, by kind.", "kind")
	expiredDesc = watcherDesc("timers_expired_total", "Timers expired of all processes, by kind.", "kind")
	partDesc    = watcherDesc("lateness_seconds_total", "By how much threads of all processes ran too late after their timers, by where the time went.", "part")
	lateDesc    = watcherDesc("wakeups_total", "Wake-ups by timers that lateness_seconds_total is of, by kind of timer.", "kind")
	hookDesc    = watcherDesc("hook_seconds_total", "CPU time that each hook took.", "hook")
	droppedDesc = watcherDesc("dropped_total", "What could not be kept, by what it was.", "what")
)

func watcherDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("detent_trace_"+name, help, labels, nil)
}

// Describe implements prometheus.Collector.
func (w *Watcher) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{callsDesc, armedDesc, expiredDesc, partDesc, lateDesc, hookDesc, droppedDesc} {
		ch <- d
	}
}

// add counts what has happened, d, and takes over the tracer's own state.
func (w *Watcher) add(d, now *trace.Snapshot) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hooks, w.lost = now.Hooks, now.Dropped
	for _, p := range d.Processes {
		for _, c := range p.ClockCalls {
			w.sums[callsDesc][string(c.Reason)] += float64(c.Count)
		}
		for _, t := range p.Timers {
			w.sums[armedDesc][string(t.Kind)] += float64(t.Armed)
			w.sums[expiredDesc][string(t.Kind)] += float64(t.Expired)
		}
		for _, l := range p.Lateness {
			parts := w.sums[partDesc]
			parts["slack"] += l.Slack.Sum.Seconds()
			parts["interrupt"] += l.Interrupt.Sum.Seconds()
			parts["wake"] += l.Wake.Sum.Seconds()
			parts["throttled"] += l.Throttled.Sum.Seconds()
			parts["run queue"] += l.RunQueue.Sum.Seconds()
			w.sums[lateDesc][string(l.Kind)] += float64(l.Total.Count)
		}
	}
}

// Collect implements prometheus.Collector.
func (w *Watcher) Collect(ch chan<- prometheus.Metric) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for d, values := range w.sums {
		for label, v := range values {
			ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, label)
		}
	}
	hooks := map[string]float64{}
	for _, h := range w.hooks {
		if h.Absent == "" {
			hooks[h.Name] += h.Time.Seconds()
		}
	}
	for name, v := range hooks {
		ch <- prometheus.MustNewConstMetric(hookDesc, prometheus.CounterValue, v, name)
	}
	for what, n := range w.lost {
		ch <- prometheus.MustNewConstMetric(droppedDesc, prometheus.CounterValue, float64(n), what)
	}
}
