package prom

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/detent-go/detent/probe"
)

// A ProbeCollector exports the latest report of package probe. Its methods are
// safe for concurrent use.
type ProbeCollector struct {
	latest func() *probe.Report
}

// NewProbeCollector returns a collector of the report that latest returns, at each
// scrape: nil while there is none. The report must not change any more; making it
// is the caller's business, since it keeps CPUs busy.
//
// The series are bounded: one for each finding that there is, of those that
// docs/findings.md lists, for each check, each clock and each way to sleep.
func NewProbeCollector(latest func() *probe.Report) *ProbeCollector {
	return &ProbeCollector{latest}
}

var (
	findingDesc   = desc("probe_finding", "A finding of the latest probe: 1 for each that there is.", "id", "severity", "confidence")
	severityDesc  = desc("probe_severity", "The worst severity among the findings: 0 info, 1 notice, 2 warning, 3 critical.")
	checkDesc     = desc("probe_check", "How much each check could see: 1 for its status.", "check", "status")
	startedAtDesc = desc("probe_start_timestamp_seconds", "When the latest probe began, since the epoch.")
	tookDesc      = desc("probe_duration_seconds", "How long the latest probe took.")

	sourceDesc = desc("probe_clocksource_info", "The kernel's clocksource: 1.", "clocksource")
	readDesc   = desc("probe_clock_read_seconds", "What reading a clock costs at the least.", "clock", "how")
	apartDesc  = desc("probe_cpu_offset_bound_seconds", "How far apart the counters of two CPUs may be, by how the CPUs are related.", "relation")
	backDesc   = desc("probe_clock_back_readings", "Readings of a clock that were smaller than one before, in the latest probe.", "clock", "method")
)

// Describe implements prometheus.Collector.
func (c *ProbeCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{findingDesc, severityDesc, checkDesc, startedAtDesc, tookDesc, sourceDesc, readDesc, apartDesc, backDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *ProbeCollector) Collect(ch chan<- prometheus.Metric) {
	r := c.latest()
	if r == nil {
		return
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	gauge(severityDesc, float64(r.Worst()))
	gauge(startedAtDesc, float64(r.Started.UnixMilli())/1e3)
	gauge(tookDesc, r.Took.Seconds())
	seen := map[[3]string]bool{}
	for _, f := range r.Findings() {
		// A finding may be there more than once, for different CPUs.
		key := [3]string{f.ID, f.Severity.String(), f.Confidence.String()}
		if !seen[key] {
			seen[key] = true
			gauge(findingDesc, 1, key[:]...)
		}
	}
	for _, result := range r.Results {
		gauge(checkDesc, 1, result.Check, string(result.Status()))
		switch d := result.Data.(type) {
		case *probe.ClocksourceData:
			gauge(sourceDesc, 1, d.Current)
		case *probe.ClocksData:
			for _, k := range d.Clocks {
				name := k.Name
				if k.Package != "" {
					name = k.Package + "." + name
				}
				gauge(readDesc, k.Cost.Least/1e9, name, k.How)
			}
		case *probe.CounterData:
			for _, g := range d.Groups {
				gauge(apartDesc, g.Bound/1e9, string(g.Relation))
			}
		case *probe.StepsData:
			for _, s := range d.Counts {
				gauge(backDesc, float64(s.Back), s.Clock, string(s.Method)+", "+strconv.Itoa(s.Threads)+" threads")
			}
		}
	}
}
