package serve

import (
	"sync"
	"time"

	"github.com/detent-go/detent/cmd/internal/doctor"
	"github.com/detent-go/detent/probe"
)

// A State is what is known of the host now.
type State struct {
	// Serial grows with every change.
	Serial  uint64    `json:"serial"`
	Time    time.Time `json:"time"`
	Started time.Time `json:"started"`

	// Verdict and Severity sum up the findings, which are those of the latest
	// probe and of the processes watched.
	Verdict  string          `json:"verdict"`
	Severity probe.Severity  `json:"severity"`
	Findings []probe.Finding `json:"findings"`

	Machine  string    `json:"machine"`
	ProbedAt time.Time `json:"probed_at"` // zero before the first probe
	Clocks   []Clock   `json:"clocks"`
	Offsets  *Offsets  `json:"offsets,omitempty"`
	Unseen   []Unseen  `json:"unseen"`

	Sleeps []Sleep `json:"sleeps"`
	Now    NowCost `json:"now"`

	Processes []Process `json:"processes"`
	// Watching says what keeps processes from being watched; "" if nothing does.
	Watching string `json:"watching"`
}

// A Clock is what reading one costs at the least.
type Clock struct {
	Name    string  `json:"name"`
	How     string  `json:"how"`
	Least   float64 `json:"least_ns"`
	Typical float64 `json:"typical_ns"`
	Syscall float64 `json:"syscall_ns,omitempty"`
}

// Offsets is how far apart the counters of CPUs may be.
type Offsets struct {
	CPUs  []int    `json:"cpus"`
	Cells []Offset `json:"cells"`
}

// An Offset is of one pair, in nanoseconds.
type Offset struct {
	From  int     `json:"from"`
	To    int     `json:"to"`
	Low   float64 `json:"low_ns"`
	High  float64 `json:"high_ns"`
	Apart bool    `json:"apart"`
}

// Unseen is a check that could not see everything.
type Unseen struct {
	Check string `json:"check"`
	Why   string `json:"why"`
}

// A Process is one that is watched. Rates are of the last second or so.
type Process struct {
	PID  int    `json:"pid"`
	Name string `json:"name"`
	// ClockCalls are system calls a second to read the clock.
	ClockCalls float64 `json:"clock_calls_per_s"`
	// Timers armed and Wakeups, a second.
	Timers  float64 `json:"timers_per_s"`
	Wakeups float64 `json:"wakeups_per_s"`
	// Late is the 99th percentile of how late its timers were; 0 if it had none.
	Late time.Duration `json:"late_p99_ns"`
	// LateBy is where most of its lateness went, by the names of label part of
	// detent_trace_lateness_seconds_total; "" if it had none.
	LateBy string `json:"late_by"`
	// Findings are those of docs/explain.md that it has, by ID, the root cause first.
	Findings []string `json:"findings"`
}

// board holds the state, and the latest report of the probe.
type board struct {
	mu       sync.Mutex
	state    State
	report   *probe.Report
	findings []probe.Finding // of the processes
	changed  chan struct{}   // closed when the state changes, and then another
}

func newBoard(now time.Time) *board {
	b := &board{changed: make(chan struct{})}
	b.state.Started, b.state.Time = now.UTC(), now.UTC()
	b.state.Verdict = "The first probe is running."
	b.state.Findings, b.state.Clocks, b.state.Unseen = []probe.Finding{}, []Clock{}, []Unseen{}
	b.state.Sleeps, b.state.Processes = []Sleep{}, []Process{}
	return b
}

// read returns the state, which must not be changed, and a channel that is closed
// when there is another.
func (b *board) read() (State, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state, b.changed
}

// latest returns the report of the latest probe, nil before there is one.
func (b *board) latest() *probe.Report {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.report
}

// update changes the state. What it puts there belongs to the readers afterwards:
// slices are replaced, never written to.
func (b *board) update(change func(*State)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.updateLocked(change)
}

func (b *board) updateLocked(change func(*State)) {
	change(&b.state)
	b.state.Serial++
	b.state.Time = time.Now().UTC()
	close(b.changed)
	b.changed = make(chan struct{})
}

// setReport takes over a report of the probe.
func (b *board) setReport(r *probe.Report) {
	machine, clocks, offsets, unseen := doctor.Machine(r.Machine), clocksOf(r), offsetsOf(r), unseenOf(r)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.report = r
	b.updateLocked(func(s *State) {
		s.ProbedAt, s.Machine, s.Unseen = r.Started.UTC(), machine, unseen
		if len(clocks) > 0 {
			s.Clocks = clocks
		}
		if offsets != nil {
			s.Offsets = offsets
		}
		b.judgeLocked(s)
	})
}

// setProcesses takes over what was seen of processes, and what is wrong with them.
func (b *board) setProcesses(list []Process, findings []probe.Finding) {
	if list == nil {
		list = []Process{}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.findings = findings
	b.updateLocked(func(s *State) {
		s.Processes, s.Watching = list, ""
		b.judgeLocked(s)
	})
}

// judgeLocked sums up all findings.
func (b *board) judgeLocked(s *State) {
	all := &probe.Report{Results: []probe.Result{{Findings: b.findings}}}
	if b.report != nil {
		all.Results = append(all.Results, b.report.Results...)
	}
	s.Findings, s.Severity = all.Findings(), all.Worst()
	if s.Findings == nil {
		s.Findings = []probe.Finding{}
	}
	if b.report != nil {
		s.Verdict = doctor.Verdict(all)
	}
}

func clocksOf(r *probe.Report) []Clock {
	var list []Clock
	for _, result := range r.Results {
		d, ok := result.Data.(*probe.ClocksData)
		if !ok {
			continue
		}
		for _, c := range d.Clocks {
			k := Clock{Name: c.Name, How: c.How, Least: c.Cost.Least, Typical: c.Cost.Typical}
			if c.Package != "" {
				k.Name = c.Package + "." + c.Name
			}
			if c.Syscall != nil {
				k.Syscall = c.Syscall.Least
			}
			list = append(list, k)
		}
	}
	return list
}

func offsetsOf(r *probe.Report) *Offsets {
	for _, result := range r.Results {
		d, ok := result.Data.(*probe.CounterData)
		if !ok || len(d.Pairs) == 0 {
			continue
		}
		o := &Offsets{Cells: []Offset{}}
		for _, c := range d.CPUs {
			o.CPUs = append(o.CPUs, c.CPU)
		}
		for _, p := range d.Pairs {
			if p.Error == "" {
				o.Cells = append(o.Cells, Offset{p.From, p.To, p.Low, p.High, p.Apart})
			}
		}
		return o
	}
	return nil
}

func unseenOf(r *probe.Report) []Unseen {
	list := []Unseen{}
	for _, u := range doctor.Unseen(r) {
		list = append(list, Unseen{u.Check, u.Err.Error()})
	}
	return list
}
