package doctor

import (
	"github.com/detent-go/detent/cmd/internal/page"
	"github.com/detent-go/detent/probe"
)

// clockSection shows what each clock costs.
func clockSection(d *probe.ClocksData) section {
	s := section{
		title: "What reading a clock costs",
		note:  "The least of many rounds is what a reading takes when nothing disturbs it. A clock that costs as much as its system call makes one. The bound is how far a clock of the counter states that it may be off the kernel's.",
		head:  []string{"clock", "read by", "least", "typical", "syscall", "resolution", "step seen", "bound"},
		text:  2,
		minor: []int{6, 3, 5},
	}
	var labels []string
	read := page.Series{Name: "as Go reads it"}
	call := page.Series{Name: "by system call"}
	for _, c := range d.Clocks {
		name := c.Name
		if c.Package != "" {
			name = c.Package + "." + c.Name
		}
		how := c.How
		if c.Why != "" {
			how += " (" + c.Why + ")"
		}
		row := []string{name, how, nanos(c.Cost.Least), nanos(c.Cost.Typical), "", duration(c.Resolution), duration(c.Step), duration(c.Bound)}
		labels = append(labels, name)
		read.Values = append(read.Values, c.Cost.Least)
		calls := 0.0
		if c.Syscall != nil {
			row[4] = nanos(c.Syscall.Least)
			calls = c.Syscall.Least
		}
		call.Values = append(call.Values, calls)
		s.rows = append(s.rows, row)
	}
	if len(labels) > 0 {
		s.charts = []page.Chart{{
			ID: "clocks", About: "What a reading of each clock costs, by the vDSO and by system call, on a logarithmic scale",
			Height: 60 + 46*len(labels), Option: page.Bars(labels, []page.Series{read, call}, true),
		}}
	}
	return s
}
