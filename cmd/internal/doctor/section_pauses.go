package doctor

import (
	"fmt"
	"strconv"

	"github.com/detent-go/detent/cmd/internal/page"
	"github.com/detent-go/detent/probe"
)

// pausesSection shows for how long a spinning loop stood still.
func pausesSection(d *probe.PausesData) section {
	s := section{
		title: "For how long a loop that only reads the clock stands still",
		note: "Gaps of a microsecond and more are what a spinning thread sees as jitter. Of those of 20 us and more it is told who had the CPU: " +
			"other threads, or something below the operating system (the hypervisor, firmware, interrupts).",
		head:  []string{"CPU", "watched", "gaps", "p50", "p99", "longest", "other threads", "longest", "below", "longest"},
		text:  1,
		minor: []int{3, 2, 7, 9},
	}
	var curves []page.Curve
	for _, c := range d.CPUs {
		name := "any"
		if c.CPU >= 0 {
			name = strconv.Itoa(c.CPU)
		}
		g := c.Gaps
		part := func(p probe.PauseSum) string {
			if p.Count == 0 || c.For <= 0 {
				return "none"
			}
			return fmt.Sprintf("%.2f %%", 100*float64(p.Total)/float64(c.For))
		}
		others, below := part(c.Preempted), part(c.Stolen)
		if !d.Pinned {
			others, below = "", ""
		}
		s.rows = append(s.rows, []string{
			name, late(c.For), strconv.FormatInt(g.Count, 10), duration(g.P50), duration(g.P99), duration(g.Max),
			others, duration(c.Preempted.Longest), below, duration(c.Stolen.Longest),
		})
		if g.Count > 0 && len(curves) < 16 {
			curves = append(curves, page.Curve{Name: "CPU " + name, Points: later(g)})
		}
	}
	if len(curves) > 0 {
		s.charts = []page.Chart{{
			ID: "pauses", About: "What part of the gaps in a spinning loop is longer than what, for each CPU",
			Height: 380, Option: page.Distribution(curves, "gap between two readings"),
		}}
	}
	return s
}
