package prom

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/detent-go/detent/probe"
)

func TestProbe(t *testing.T) {
	if n := testutil.CollectAndCount(NewProbeCollector(func() *probe.Report { return nil })); n != 0 {
		t.Errorf("%d metrics of no report", n)
	}
	r := &probe.Report{
		Started: time.UnixMilli(1_790_000_000_500), Took: 1500 * time.Millisecond,
		Results: []probe.Result{
			{Check: "clocksource", Data: &probe.ClocksourceData{Current: "hpet"}, Findings: []probe.Finding{
				{ID: "clocksource.no-vdso", Severity: probe.Critical, Confidence: probe.Certain},
				{ID: "cpu.slow", Severity: probe.Notice}, {ID: "cpu.slow", Severity: probe.Notice},
			}},
			{Check: "clocks", Data: &probe.ClocksData{Clocks: []probe.ClockCost{{Package: "time", Name: "Now", How: "runtime", Cost: probe.Cost{Least: 40}}}}},
			{Check: "counter", Data: &probe.CounterData{Groups: []probe.OffsetGroup{{Relation: "cores", Bound: 50}}}},
			{Check: "steps", Data: &probe.StepsData{Counts: []probe.StepCount{
				{Clock: "time.Now", Method: probe.Shared, Threads: 2, Back: 7},
			}}},
		},
	}
	c := NewProbeCollector(func() *probe.Report { return r })
	if problems, err := testutil.CollectAndLint(c); err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
	const want = `
# HELP detent_probe_check How much each check could see: 1 for its status.
# TYPE detent_probe_check gauge
detent_probe_check{check="clocks",status="measured"} 1
detent_probe_check{check="clocksource",status="measured"} 1
detent_probe_check{check="counter",status="measured"} 1
detent_probe_check{check="steps",status="measured"} 1
# HELP detent_probe_clock_back_readings Readings of a clock that were smaller than one before, in the latest probe.
# TYPE detent_probe_clock_back_readings gauge
detent_probe_clock_back_readings{clock="time.Now",method="shared maximum, 2 threads"} 7
# HELP detent_probe_clock_read_seconds What reading a clock costs at the least.
# TYPE detent_probe_clock_read_seconds gauge
detent_probe_clock_read_seconds{clock="time.Now",how="runtime"} 4e-08
# HELP detent_probe_clocksource_info The kernel's clocksource: 1.
# TYPE detent_probe_clocksource_info gauge
detent_probe_clocksource_info{clocksource="hpet"} 1
# HELP detent_probe_cpu_offset_bound_seconds How far apart the counters of two CPUs may be, by how the CPUs are related.
# TYPE detent_probe_cpu_offset_bound_seconds gauge
detent_probe_cpu_offset_bound_seconds{relation="cores"} 5e-08
# HELP detent_probe_duration_seconds How long the latest probe took.
# TYPE detent_probe_duration_seconds gauge
detent_probe_duration_seconds 1.5
# HELP detent_probe_finding A finding of the latest probe: 1 for each that there is.
# TYPE detent_probe_finding gauge
detent_probe_finding{confidence="certain",id="clocksource.no-vdso",severity="critical"} 1
detent_probe_finding{confidence="possible",id="cpu.slow",severity="notice"} 1
# HELP detent_probe_severity The worst severity among the findings: 0 info, 1 notice, 2 warning, 3 critical.
# TYPE detent_probe_severity gauge
detent_probe_severity 3
# HELP detent_probe_start_timestamp_seconds When the latest probe began, since the epoch.
# TYPE detent_probe_start_timestamp_seconds gauge
detent_probe_start_timestamp_seconds 1.7900000005e+09
`
	if err := testutil.CollectAndCompare(c, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}
