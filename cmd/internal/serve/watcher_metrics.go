package serve

import (
	"maps"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/detent-go/detent/trace"
)

var (
	callsDesc   = watcherDesc("clock_calls_total", "System calls of all processes that read a clock, by why they are made.", "reason")
	armedDesc   = watcherDesc("timers_armed_total", "Timers armed by all processes, by kind.", "kind")
	expiredDesc = watcherDesc("timers_expired_total", "Timers expired of all processes, by kind.", "kind")
	partDesc    = watcherDesc("lateness_seconds_total", "By how much threads of all processes ran too late after their timers, by where the time went.", "part")
	lateDesc    = watcherDesc("wakeups_total", "Wake-ups by timers that lateness_seconds_total is of, by kind of timer.", "kind")
	hookDesc    = watcherDesc("hook_seconds_total", "CPU time that each hook took.", "hook")
	droppedDesc = watcherDesc("dropped_total", "What could not be kept, by what it was.", "what")
	foundDesc   = prometheus.NewDesc("detent_process_findings", "Processes that have a finding of docs/explain.md now, by its ID and severity.", []string{"id", "severity"}, nil)
)

func watcherDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("detent_trace_"+name, help, labels, nil)
}

// Describe implements prometheus.Collector.
func (w *Watcher) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{callsDesc, armedDesc, expiredDesc, partDesc, lateDesc, hookDesc, droppedDesc, foundDesc} {
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
			for _, part := range parts {
				w.sums[partDesc][part.name] += part.of(&l).Sum.Seconds()
			}
			w.sums[lateDesc][string(l.Kind)] += float64(l.Total.Count)
		}
	}
}

// count takes over how many processes have which finding.
func (w *Watcher) count(j judgement) {
	w.mu.Lock()
	defer w.mu.Unlock()
	// A finding that has been there and is not is 0: a series that ends looks like
	// a host that does not answer.
	for k := range w.found {
		w.found[k] = 0
	}
	maps.Copy(w.found, j.counts)
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
	for k, n := range w.found {
		ch <- prometheus.MustNewConstMetric(foundDesc, prometheus.GaugeValue, float64(n), k.id, k.severity.String())
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
