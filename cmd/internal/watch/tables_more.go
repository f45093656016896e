package watch

import (
	"fmt"
	"strconv"

	"github.com/detent-go/detent/trace"
)

// goroutines is the part of lateness that the kernel does not see: what is due has to
// wait for a P, and package time for the runtime to look at it.
func goroutines(d *trace.Snapshot) Table {
	t := Table{
		Name: "goroutines", Title: "Go programs: how long goroutines wait for a P, and how late package time's timers fire",
		Head:  columns("#PID", "PROCESS", "GO", "#PS", "#IDLE", "#QUEUED", "#WAIT MEDIAN", "#WAIT 99%", "#TIMERS/S", "#LATE MEDIAN", "#LATE 99%"),
		Empty: "No Go program is followed by its process id; timers need --features +go-timers.",

		optional: true,
	}
	for i := range d.Processes {
		p := &d.Processes[i]
		if p.Go == nil && p.GoTimers == nil {
			continue
		}
		cells := []string{strconv.Itoa(p.PID), who(p), "", "", "", "", "", "", "", "", ""}
		detail := []string{fmt.Sprintf("%s[%d]", p.Comm, p.PID)}
		var weight float64
		if g := p.Go; g != nil {
			cells[2] = g.Version
			if g.GOMAXPROCS > 0 {
				cells[3], cells[4], cells[5] = strconv.Itoa(g.GOMAXPROCS), strconv.Itoa(g.IdlePs), strconv.Itoa(g.Queued)
			}
			if g.Latency.Count > 0 {
				cells[6], cells[7] = AtMost(g.Latency.Quantile(0.5)), AtMost(g.Latency.Quantile(0.99))
				weight = float64(g.Latency.Sum)
			}
			if g.Absent != "" {
				detail = append(detail, "not read: "+g.Absent)
			}
		}
		if h := p.GoTimers; h != nil {
			cells[8] = Rate(h.Count, d.Elapsed)
			if h.Count > 0 {
				cells[9], cells[10] = AtMost(h.Quantile(0.5)), AtMost(h.Quantile(0.99))
				detail = append(detail, fmt.Sprintf("timers: %d fired, by the runtime's own clock longest %s late, mean %s", h.Count, Duration(h.Max), Duration(h.Mean())))
			}
		}
		t.Rows = append(t.Rows, Row{Cells: cells, Detail: append(detail, goDetail(p)...), Key: strconv.Itoa(p.PID), weight: weight})
	}
	return sorted(t)
}

// goDetail is what a Go program's scheduler adds to lateness, in lines.
func goDetail(p *trace.Process) []string {
	var lines []string
	if h := p.GoTimers; h != nil && h.Count > 0 {
		lines = append(lines, fmt.Sprintf("Go's timers: %d fired, late by the runtime's own clock: median %s, 99%% %s",
			h.Count, AtMost(h.Quantile(0.5)), AtMost(h.Quantile(0.99))))
	}
	if g := p.Go; g != nil && g.Latency.Count > 0 {
		lines = append(lines, fmt.Sprintf("goroutines (%s, GOMAXPROCS %d, %d idle): runnable before they ran: median %s, 99%% %s",
			g.Version, g.GOMAXPROCS, g.IdlePs, AtMost(g.Latency.Quantile(0.5)), AtMost(g.Latency.Quantile(0.99))))
	} else if g != nil && g.Absent != "" {
		lines = append(lines, fmt.Sprintf("goroutines (%s): %s", g.Version, g.Absent))
	}
	return lines
}

// profile is the part of CPU time that goes into reading clocks.
func profile(d *trace.Snapshot) Table {
	t := Table{
		Name: "profile", Title: "How much of their CPU time processes spend on reading clocks",
		Head:  columns("#PID", "PROCESS", "#SAMPLES", "#CLOCKS", "#BY VDSO", "#BY CALL", "#OTHER KERNEL", "WHERE"),
		Empty: "No process is sampled: that takes its process id and --features +profile.",

		optional: true,
	}
	for i := range d.Processes {
		p := &d.Processes[i]
		q := p.Profile
		if q == nil || q.Samples() == 0 {
			continue
		}
		percent := func(n uint64) string { return fmt.Sprintf("%.0f%%", 100*float64(n)/float64(q.Samples())) }
		where := ""
		if len(q.Stacks) > 0 {
			frame, _ := Caller(q.Stacks[0])
			where = Place(frame)
		}
		reading := q.VDSO + q.ClockCall
		t.Rows = append(t.Rows, Row{
			Cells: []string{
				strconv.Itoa(p.PID), who(p), strconv.FormatUint(q.Samples(), 10), percent(reading), percent(q.VDSO),
				percent(q.ClockCall), percent(q.Kernel), where,
			},
			Detail: append([]string{fmt.Sprintf("%s[%d]: %d of %d samples read a clock", p.Comm, p.PID, reading, q.Samples())}, stackLines(q.Stacks, reading)...),
			Key:    strconv.Itoa(p.PID), weight: float64(reading),
		})
	}
	return sorted(t)
}
