package prom

import (
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/detent-go/detent/clock"
	"github.com/detent-go/detent/timer"
)

// Options say what a Collector exports. The zero value exports the default
// service, the kernel's clocks and the cost of time.Now.
type Options struct {
	// Services are those of package timer, by the value of their label. nil: the
	// default service, as "default".
	Services map[string]*timer.Service

	// Queues are those of package timer, by the value of their label. A *timer.Queue
	// is one, whatever its values are. nil: none.
	Queues map[string]Queue

	// TSC is a clock whose health is exported; nil: none.
	TSC *clock.TSC

	// NoTimeNow leaves the cost of time.Now out. It takes some quarter of a millisecond
	// of each CPU, at most every 10 seconds (go test -bench Scrape in this package).
	NoTimeNow bool
}

// A Queue is a *timer.Queue of any type. What its service does to wake it is counted
// by the service.
type Queue interface {
	Stats() timer.Stats
}

// A Collector is a prometheus.Collector. Its methods are safe for concurrent use.
type Collector struct {
	services []service
	queues   []queue
	tsc      *clock.TSC
	now      *nowSampler // nil: none
}

type service struct {
	name string
	s    *timer.Service
}

type queue struct {
	name string
	q    Queue
}

// NewCollector returns a collector. It panics if a service or a queue is nil.
func NewCollector(o Options) *Collector {
	c := &Collector{tsc: o.TSC}
	if o.Services == nil {
		o.Services = map[string]*timer.Service{"default": timer.Default()}
	}
	for _, name := range slices.Sorted(maps.Keys(o.Services)) {
		if o.Services[name] == nil {
			panic("prom: service " + name + " is nil")
		}
		c.services = append(c.services, service{name, o.Services[name]})
	}
	for _, name := range slices.Sorted(maps.Keys(o.Queues)) {
		if o.Queues[name] == nil {
			panic("prom: queue " + name + " is nil")
		}
		c.queues = append(c.queues, queue{name, o.Queues[name]})
	}
	if !o.NoTimeNow {
		c.now = newNowSampler()
	}
	return c
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("detent_"+name, help, labels, nil)
}

var (
	startedDesc  = desc("timer_started_total", "Timers, tickers, sleeps and contexts started.", "service")
	stoppedDesc  = desc("timer_stopped_total", "Pending timers stopped.", "service")
	resetDesc    = desc("timer_reset_total", "Pending timers reset.", "service")
	firedDesc    = desc("timer_fired_total", "Expiries of timers.", "service")
	pendingDesc  = desc("timer_pending", "Timers that wait now.", "service")
	wakeupsDesc  = desc("timer_wakeups_total", "Times that the service was woken by the system or the Go runtime.", "service")
	latenessDesc = desc("timer_lateness_seconds", "By how much timers fired after their deadlines.", "service")

	causeDesc = desc("timer_lateness_cause_seconds", "timer_lateness_seconds split by cause; the parts of each timer add up to its lateness.", "service", "cause")
	spunDesc  = desc("timer_spun_seconds_total", "CPU time spent spinning until deadlines passed.", "service")
	keptDesc  = desc("timer_kept_seconds_total", "Time for which a lane has kept its P while others queued for one.", "service")
	wakerDesc = desc("timer_waker_info", "What wakes the service for precise timers: 1.", "service", "waker")
	worseDesc = desc("timer_waker_fallback", "Whether no better waker could be made (1), as where file descriptors have run out.", "service")

	queueStartedDesc   = desc("queue_started_total", "Values added, and reset after they had been delivered or stopped.", "queue")
	queueStoppedDesc   = desc("queue_stopped_total", "Pending values stopped.", "queue")
	queueResetDesc     = desc("queue_reset_total", "Pending values reset.", "queue")
	queueDeliveredDesc = desc("queue_delivered_total", "Values delivered.", "queue")
	queuePendingDesc   = desc("queue_pending", "Values that wait now.", "queue")
	queueWakeupsDesc   = desc("queue_wakeups_total", "Times that the queue was woken by its service.", "queue")
	queueLatenessDesc  = desc("queue_lateness_seconds", "By how much values were delivered after their deadlines.", "queue")

	clockInfoDesc = desc("clock_info", "How each clock of the kernel is read in this process: by the vDSO, or why not.", "clock", "source")
	trustedDesc   = desc("clock_trusted", "Whether the cycle counter is read (1), or the kernel's clock in its place (0).")
	boundDesc     = desc("clock_error_bound_seconds", "How far the counter's clock may be from the kernel's.")
	offsetDesc    = desc("clock_cpu_offset_bound_seconds", "How far apart the counters of any two CPUs compared may be.")
	fallbackDesc  = desc("clock_fallbacks_total", "Times that trust in the counter was lost.")
	jumpDesc      = desc("clock_jumps_total", "Times that counter and kernel's clock were found apart, as after a suspend or a migration.")
)

// Describe implements prometheus.Collector.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{startedDesc, stoppedDesc, resetDesc, firedDesc, pendingDesc, wakeupsDesc, latenessDesc, causeDesc, spunDesc, keptDesc, wakerDesc, worseDesc, clockInfoDesc} {
		ch <- d
	}
	if len(c.queues) > 0 {
		for _, d := range []*prometheus.Desc{queueStartedDesc, queueStoppedDesc, queueResetDesc, queueDeliveredDesc, queuePendingDesc, queueWakeupsDesc, queueLatenessDesc} {
			ch <- d
		}
	}
	if c.tsc != nil {
		for _, d := range []*prometheus.Desc{trustedDesc, boundDesc, offsetDesc, fallbackDesc, jumpDesc} {
			ch <- d
		}
	}
	if c.now != nil {
		c.now.cost.Describe(ch)
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	for _, s := range c.services {
		s.collect(ch)
	}
	for _, q := range c.queues {
		q.collect(ch)
	}
	for _, k := range clock.Clocks() {
		ch <- prometheus.MustNewConstMetric(clockInfoDesc, prometheus.GaugeValue, 1, k.String(), k.Source().String())
	}
	if c.tsc != nil {
		c.collectTSC(ch)
	}
	if c.now != nil {
		c.now.sample()
		c.now.cost.Collect(ch)
	}
}

func (s service) collect(ch chan<- prometheus.Metric) {
	stats := s.s.Stats()
	counts(ch, s.name, []count{
		{startedDesc, prometheus.CounterValue, stats.Started},
		{stoppedDesc, prometheus.CounterValue, stats.Stopped},
		{resetDesc, prometheus.CounterValue, stats.Reset},
		{firedDesc, prometheus.CounterValue, stats.Fired},
		{pendingDesc, prometheus.GaugeValue, stats.Pending},
		{wakeupsDesc, prometheus.CounterValue, stats.Wakeups},
	})
	ch <- newHistogram(latenessDesc, stats.Lateness, "service", s.name)
	for _, c := range []struct {
		cause string
		part  timer.Histogram
	}{
		{"slack", stats.Blame.Slack},
		{"kernel", stats.Blame.Kernel},
		{"scheduler", stats.Blame.Scheduler},
		{"kernel or scheduler", stats.Blame.Wakeup},
		{"throttled", stats.Blame.Throttled},
		{"queue", stats.Blame.Queue},
	} {
		ch <- newHistogram(causeDesc, c.part, "service", s.name, "cause", c.cause)
	}
	ch <- prometheus.MustNewConstMetric(spunDesc, prometheus.CounterValue, stats.Spun.Seconds(), s.name)
	ch <- prometheus.MustNewConstMetric(keptDesc, prometheus.CounterValue, stats.Kept.Seconds(), s.name)
	ch <- prometheus.MustNewConstMetric(wakerDesc, prometheus.GaugeValue, 1, s.name, stats.Waker)
	ch <- prometheus.MustNewConstMetric(worseDesc, prometheus.GaugeValue, number(stats.WakerErr != nil), s.name)
}

// A count is one of Stats.
type count struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value uint64
}

func counts(ch chan<- prometheus.Metric, name string, list []count) {
	for _, c := range list {
		ch <- prometheus.MustNewConstMetric(c.desc, c.kind, float64(c.value), name)
	}
}

func number(holds bool) float64 {
	if holds {
		return 1
	}
	return 0
}

func (q queue) collect(ch chan<- prometheus.Metric) {
	stats := q.q.Stats()
	counts(ch, q.name, []count{
		{queueStartedDesc, prometheus.CounterValue, stats.Started},
		{queueStoppedDesc, prometheus.CounterValue, stats.Stopped},
		{queueResetDesc, prometheus.CounterValue, stats.Reset},
		{queueDeliveredDesc, prometheus.CounterValue, stats.Fired},
		{queuePendingDesc, prometheus.GaugeValue, stats.Pending},
		{queueWakeupsDesc, prometheus.CounterValue, stats.Wakeups},
	})
	ch <- newHistogram(queueLatenessDesc, stats.Lateness, "queue", q.name)
}

func (c *Collector) collectTSC(ch chan<- prometheus.Metric) {
	h := c.tsc.Health()
	_, bound := c.tsc.Bounded()
	gauge := func(d *prometheus.Desc, v float64) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v)
	}
	gauge(trustedDesc, number(h.Trusted))
	gauge(boundDesc, bound.Seconds())
	gauge(offsetDesc, h.Offset.Seconds())
	ch <- prometheus.MustNewConstMetric(fallbackDesc, prometheus.CounterValue, float64(h.Fallbacks))
	ch <- prometheus.MustNewConstMetric(jumpDesc, prometheus.CounterValue, float64(h.Jumps))
}
