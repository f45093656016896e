package serve

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/detent-go/detent/cmd/internal/explain"
	"github.com/detent-go/detent/probe"
	"github.com/detent-go/detent/trace"
)

const (
	// maxFindings is how many findings about processes are shown, and maxAlike how
	// many of them for one thing: on a busy host most processes wait for a CPU.
	maxFindings = 20
	maxAlike    = 3
	// maxShown is how many processes are shown, the worst.
	maxShown = 20
)

// A judgement is what is the matter with processes, by the rules of detent explain.
type judgement struct {
	findings []probe.Finding // the worst, with the process in their titles
	counts   map[kindOfFinding]int
	byPID    map[int][]probe.Finding // the root cause first
}

// A kindOfFinding is what findings are counted by. There are as many as explain has
// IDs and severities, however many processes there are.
type kindOfFinding struct {
	id       string
	severity probe.Severity
}

// judge judges each process but this one, self, which reads clocks by system calls
// to see what they cost. r is the latest report of the machine, nil before the first.
func judge(d *trace.Snapshot, r *probe.Report, self int) judgement {
	j := judgement{findings: []probe.Finding{}, counts: map[kindOfFinding]int{}, byPID: map[int][]probe.Finding{}}
	facts := explain.Facts{Elapsed: d.Elapsed, Clocksource: d.Clocksource}
	if r != nil {
		facts.Machine, facts.Cost = r.Findings(), explain.CostOf(r)
	}
	for _, p := range byDemand(d.Processes) {
		if p.PID == self || p.Ended {
			continue
		}
		facts.Process = p
		for _, f := range explain.Judge(facts) {
			// What is of the machine is among the probe's findings.
			if !strings.HasPrefix(f.ID, "explain.") || f.Severity == probe.Info {
				continue
			}
			j.counts[kindOfFinding{f.ID, f.Severity}]++
			j.byPID[p.PID] = append(j.byPID[p.PID], f)
			f.Title = fmt.Sprintf("%s (PID %d): %s", p.Comm, p.PID, f.Title)
			j.findings = append(j.findings, f)
		}
	}
	slices.SortStableFunc(j.findings, func(a, b probe.Finding) int {
		return cmp.Or(-cmp.Compare(a.Severity, b.Severity), -cmp.Compare(a.Confidence, b.Confidence))
	})
	j.findings = alike(j.findings)
	j.findings = j.findings[:min(len(j.findings), maxFindings)]
	return j
}

// byDemand returns the processes with those first that ran, or wanted to, for longest.
func byDemand(list []trace.Process) []trace.Process {
	demand := func(p trace.Process) time.Duration {
		d := p.CPU
		if p.Wait != nil {
			d += p.Wait.RunQueue.Sum + p.Wait.Throttled.Sum
		}
		return d
	}
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b trace.Process) int { return -cmp.Compare(demand(a), demand(b)) })
	return list
}

// alike keeps the first maxAlike findings of each ID, and says at the last of them how
// many processes more have it.
func alike(found []probe.Finding) []probe.Finding {
	kept := []probe.Finding{}
	count, last := map[string]int{}, map[string]int{}
	for _, f := range found {
		if count[f.ID]++; count[f.ID] <= maxAlike {
			last[f.ID] = len(kept)
			kept = append(kept, f)
		}
	}
	for id, n := range count {
		if n > maxAlike {
			f := &kept[last[id]]
			f.Detail = strings.TrimSpace(fmt.Sprintf("%s It is so of %d processes more.", f.Detail, n-maxAlike))
		}
	}
	return kept
}

// processesOf returns the worst: those with findings, then those that read the clock
// by system calls, arm timers or are woken most.
func processesOf(d *trace.Snapshot, j judgement) []Process {
	seconds := d.Elapsed.Seconds()
	if seconds <= 0 {
		return nil
	}
	list := []Process{}
	for _, p := range d.Processes {
		x := Process{PID: p.PID, Name: p.Comm, Findings: []string{}}
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
		x.LateBy = largestPart(p.Lateness)
		for _, f := range j.byPID[p.PID] {
			x.Findings = append(x.Findings, f.ID)
		}
		if x.ClockCalls+x.Timers+x.Wakeups > 0 || len(x.Findings) > 0 {
			list = append(list, x)
		}
	}
	worst := func(p Process) int { return int(explain.Worst(j.byPID[p.PID])) }
	weight := func(p Process) float64 { return p.ClockCalls + 10*p.Timers + 10*p.Wakeups }
	slices.SortFunc(list, func(a, b Process) int {
		return cmp.Or(-cmp.Compare(worst(a), worst(b)), -cmp.Compare(weight(a), weight(b)), cmp.Compare(a.PID, b.PID))
	})
	return list[:min(len(list), maxShown)]
}

// parts of lateness, by the names of the metric.
var parts = []struct {
	name string
	of   func(*trace.Lateness) *trace.Histogram
}{
	{"slack", func(l *trace.Lateness) *trace.Histogram { return &l.Slack }},
	{"interrupt", func(l *trace.Lateness) *trace.Histogram { return &l.Interrupt }},
	{"wake", func(l *trace.Lateness) *trace.Histogram { return &l.Wake }},
	{"throttled", func(l *trace.Lateness) *trace.Histogram { return &l.Throttled }},
	{"run queue", func(l *trace.Lateness) *trace.Histogram { return &l.RunQueue }},
}

// largestPart is where most of the lateness went, "" if there was none.
func largestPart(list []trace.Lateness) string {
	var name string
	var most int64
	for _, part := range parts {
		var sum int64
		for i := range list {
			sum += int64(part.of(&list[i]).Sum)
		}
		if sum > most {
			name, most = part.name, sum
		}
	}
	return name
}
