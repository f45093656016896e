package serve

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/detent-go/detent/probe"
	"github.com/detent-go/detent/trace"
)

const (
	// watchEvery is how often the processes are looked at.
	watchEvery = time.Second

	// judgeEvery is how often they are judged, by what they did since the last time.
	judgeEvery = 5 * time.Second
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
	found map[kindOfFinding]int // processes that have it; those that none has any more stay
}

// NewWatcher returns a watcher that has not begun.
func NewWatcher(log *slog.Logger) *Watcher {
	w := &Watcher{log: log, sums: map[*prometheus.Desc]map[string]float64{}, found: map[kindOfFinding]int{}}
	for _, d := range []*prometheus.Desc{callsDesc, armedDesc, expiredDesc, partDesc, lateDesc} {
		w.sums[d] = map[string]float64{}
	}
	return w
}

// Watch is Options.Watch.
func (w *Watcher) Watch(ctx context.Context, latest func() *probe.Report, show func([]Process, []probe.Finding)) error {
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
	var before, judged *trace.Snapshot // the last ones that were looked at, and judged
	var verdict judgement
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
		switch {
		case judged == nil:
			judged = now
		case now.Taken.Sub(judged.Taken) >= judgeEvery:
			verdict = judge(now.Since(judged), latest(), os.Getpid())
			w.count(verdict)
			judged = now
		}
		if before != nil {
			show(processesOf(d, verdict), verdict.findings)
		}
		before = now
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
