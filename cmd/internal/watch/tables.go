package watch

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/detent-go/detent/trace"
)

// A Table is one view of a difference between two snapshots.
type Table struct {
	Name  string // one word, for a tab
	Title string
	Head  []Column
	Rows  []Row
	Empty string // what it means that there are no rows

	optional bool // text does without it where there are no rows
}

// A Column is a column's name, and whether it has numbers.
type Column struct {
	Name   string
	Number bool
}

// A Row is a line of a table.
type Row struct {
	Cells  []string
	Detail []string // lines that explain it
	// Key is the same for a row in the next difference, so that a choice stays.
	Key string

	weight float64
}

// Tables are all views, in order. d is what happened in d.Elapsed.
func Tables(d *trace.Snapshot) []Table {
	return []Table{calls(d), lateness(d), goroutines(d), wakeups(d), profile(d)}
}

// columns makes a table's head; names of numbers begin with "#".
func columns(names ...string) []Column {
	head := make([]Column, len(names))
	for i, n := range names {
		if n[0] == '#' {
			head[i] = Column{n[1:], true}
		} else {
			head[i] = Column{n, false}
		}
	}
	return head
}

func sorted(t Table) Table {
	slices.SortStableFunc(t.Rows, func(a, b Row) int { return cmp.Compare(b.weight, a.weight) })
	return t
}

func who(p *trace.Process) string {
	if p.Ended {
		return p.Comm + " (ended)"
	}
	return p.Comm
}

func calls(d *trace.Snapshot) Table {
	t := Table{
		Name: "clocks", Title: "Clocks read by system calls",
		Head:  columns("#PID", "PROCESS", "CLOCK", "#CALLS/S", "WHY", "WHERE"),
		Empty: "No process makes a system call to read a clock: they are on the vDSO.",
	}
	for i := range d.Processes {
		p := &d.Processes[i]
		for j := range p.ClockCalls {
			c := &p.ClockCalls[j]
			where := ""
			if len(c.Stacks) > 0 {
				frame, _ := Caller(c.Stacks[0])
				where = Place(frame)
			}
			clock := c.Clock
			if c.Call != "clock_gettime" {
				clock = c.Call
			}
			t.Rows = append(t.Rows, Row{
				Cells:  []string{strconv.Itoa(p.PID), who(p), clock, Rate(c.Count, d.Elapsed), string(c.Reason), where},
				Detail: callDetail(p, c),
				Key:    fmt.Sprint(p.PID, c.Call, c.Clock),
				weight: float64(c.Count),
			})
		}
	}
	return sorted(t)
}

// detailStacks is how many stacks a detail has.
const detailStacks = 4

func callDetail(p *trace.Process, c *trace.ClockCalls) []string {
	lines := []string{fmt.Sprintf("%s[%d]: %s", p.Comm, p.PID, Why(c.Reason))}
	if p.Exe != "" {
		lines = append(lines, "program: "+p.Exe)
	}
	for _, e := range c.Evidence {
		lines = append(lines, fmt.Sprintf("%s: %s  [%s]", e.Name, e.Value, e.Source))
	}
	if h := c.Took; h != nil && h.Count > 0 {
		lines = append(lines, fmt.Sprintf("in the kernel: median %s, 99%% %s, longest %s",
			AtMost(h.Quantile(0.5)), AtMost(h.Quantile(0.99)), Duration(h.Max)))
	}
	return append(lines, stackLines(c.Stacks, c.Sampled)...)
}

func stackLines(stacks []trace.Stack, of uint64) []string {
	var lines []string
	for _, s := range stacks[:min(len(stacks), detailStacks)] {
		lines = append(lines, fmt.Sprintf("%d of %d samples:", s.Count, max(of, s.Count)))
		for _, f := range s.Frames {
			lines = append(lines, "    "+Place(f))
		}
	}
	return lines
}

func lateness(d *trace.Snapshot) Table {
	t := Table{
		Name: "lateness", Title: "How late timers wake threads, and where that comes from",
		Head:  columns("#PID", "PROCESS", "TIMER", "#WAKES/S", "#MEDIAN", "#99%", "#MEAN", "#SLACK", "#INTERRUPT", "#WAKING", "#THROTTLED", "#RUN QUEUE"),
		Empty: "No timer has woken a thread.",
	}
	for i := range d.Processes {
		p := &d.Processes[i]
		for j := range p.Lateness {
			l := &p.Lateness[j]
			mean := l.Total.Mean()
			cells := []string{
				strconv.Itoa(p.PID), who(p), string(l.Kind), Rate(l.Total.Count, d.Elapsed),
				AtMost(l.Total.Quantile(0.5)), AtMost(l.Total.Quantile(0.99)), Duration(mean),
			}
			for _, part := range parts(l) {
				cells = append(cells, share(part.h.Mean(), mean))
			}
			t.Rows = append(t.Rows, Row{
				Cells: cells, Detail: latenessDetail(p, l), Key: fmt.Sprint(p.PID, l.Kind),
				weight: float64(l.Total.Sum),
			})
		}
	}
	return sorted(t)
}

type part struct {
	name, meaning string
	h             *trace.Histogram
}

// parts are those of a lateness, in the order in which they pass.
func parts(l *trace.Lateness) []part {
	return []part{
		{"slack", "the kernel was allowed to wait that long", &l.Slack},
		{"interrupt", "until the timer's interrupt ran", &l.Interrupt},
		{"waking", "until the thread was on a run queue", &l.Wake},
		{"throttled", "its cgroup's CPU quota was used up", &l.Throttled},
		{"run queue", "other threads had the CPU", &l.RunQueue},
	}
}

func latenessDetail(p *trace.Process, l *trace.Lateness) []string {
	lines := []string{fmt.Sprintf("%s[%d], %s: %d wake-ups, from the deadline until the thread ran", p.Comm, p.PID, l.Kind, l.Total.Count)}
	for _, q := range append(parts(l), part{"total", "", &l.Total}) {
		line := fmt.Sprintf("%-10s median %7s  99%% %7s  longest %6s", q.name,
			AtMost(q.h.Quantile(0.5)), AtMost(q.h.Quantile(0.99)), Duration(q.h.Max))
		if q.meaning != "" {
			line += "  " + q.meaning
		}
		lines = append(lines, line)
	}
	if q := p.Quota; q != nil {
		lines = append(lines, fmt.Sprintf("CPU quota %.2f CPUs in %s: throttled in %d of %d periods", q.CPUs(), q.Path, q.Throttles, q.Periods))
	}
	return append(lines, goDetail(p)...)
}

func wakeups(d *trace.Snapshot) Table {
	t := Table{
		Name: "wakeups", Title: "Who arms timers, and wakes this machine",
		Head:  columns("#PID", "PROCESS", "TIMER", "#ARMED/S", "#EXPIRED/S", "#IDLE CPU/S", "#THREADS/S", "#ASKED FOR"),
		Empty: "No timer has been armed.",
	}
	add := func(pid int, name string, us []trace.TimerUse) {
		for _, u := range us {
			process := name
			if u.Func != "" {
				process = u.Func
			}
			asked := ""
			if u.Armed > 0 {
				asked = Duration(u.Asked / time.Duration(u.Armed))
			}
			t.Rows = append(t.Rows, Row{
				Cells: []string{
					strconv.Itoa(pid), process, string(u.Kind), Rate(u.Armed, d.Elapsed), Rate(u.Expired, d.Elapsed),
					Rate(u.Idle, d.Elapsed), Rate(u.Woken, d.Elapsed), asked,
				},
				Detail: []string{
					fmt.Sprintf("%s[%d], %s: %d armed, %d expired, %d of these on an idle CPU; %d threads woken", process, pid, u.Kind, u.Armed, u.Expired, u.Idle, u.Woken),
				},
				Key:    fmt.Sprint(pid, u.Kind, u.Func),
				weight: float64(u.Expired) + float64(u.Armed)/1e6,
			})
		}
	}
	for i := range d.Processes {
		p := &d.Processes[i]
		add(p.PID, who(p), p.Timers)
	}
	add(0, "kernel", d.Kernel)
	return sorted(t)
}

// Status is one line about the tracing itself.
func Status(d *trace.Snapshot) string {
	s := fmt.Sprintf("clocksource %s, %s", cmp.Or(d.Clocksource, "unknown"), Duration(d.Elapsed.Round(100*time.Millisecond)))
	if d.Elapsed > 0 {
		s += fmt.Sprintf(", tracing takes %.2f%% of a CPU", 100*float64(d.Overhead())/float64(d.Elapsed))
	}
	return s
}

// Notes are what the reader has to know about gaps: hooks that are absent, and what
// was dropped.
func Notes(d *trace.Snapshot) []string {
	var notes []string
	for _, h := range d.Hooks {
		if h.Absent != "" {
			notes = append(notes, fmt.Sprintf("absent: %s (for %s): %s", h.Name, h.Feature, h.Absent))
		}
	}
	var what []string
	for w := range d.Dropped {
		what = append(what, w)
	}
	slices.Sort(what)
	for _, w := range what {
		notes = append(notes, fmt.Sprintf("dropped: %s: %d", w, d.Dropped[w]))
	}
	return notes
}
