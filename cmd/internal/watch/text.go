package watch

import (
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/detent-go/detent/trace"
)

// maxTextRows is how many rows of a table are written as text.
const maxTextRows = 20

// WriteText writes what happened between two snapshots: the tables, the
// explanation of the first rows of who reads clocks by system calls, and what was
// dropped. Only tables of the features that were watched are written.
func WriteText(w io.Writer, d *trace.Snapshot, events []trace.Event, f trace.Features, width int, color bool) error {
	var b strings.Builder
	bold := func(s string) string {
		if color {
			return text.Bold.Sprint(s)
		}
		return s
	}
	b.WriteString(Status(d) + "\n")
	for _, n := range Notes(d) {
		b.WriteString(n + "\n")
	}
	for i, t := range Tables(d) {
		if f&watched[i] == 0 || t.optional && len(t.Rows) == 0 {
			continue
		}
		b.WriteString("\n" + bold(t.Title) + "\n")
		if len(t.Rows) == 0 {
			b.WriteString(t.Empty + "\n")
			continue
		}
		shown := t.Rows[:min(len(t.Rows), maxTextRows)]
		b.WriteString(render(t.Head, shown, width))
		if more := len(t.Rows) - len(shown); more > 0 {
			fmt.Fprintf(&b, "and %d more\n", more)
		}
		if t.Name == "clocks" {
			for _, r := range explained(shown) {
				b.WriteString("\n  " + strings.Join(r.Detail, "\n  ") + "\n")
			}
		}
	}
	if len(events) > 0 {
		b.WriteString("\n" + bold("Events") + "\n")
		for _, e := range events {
			b.WriteString(eventLine(e) + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// explained are the rows whose details are written: the first of each of the first
// processes. The others of a process say the same of another clock.
func explained(rows []Row) (list []Row) {
	seen := map[string]bool{}
	for _, r := range rows {
		pid := r.Cells[0]
		if !seen[pid] && len(list) < 3 {
			seen[pid] = true
			list = append(list, r)
		}
	}
	return list
}

// watched are the features that the tables are of, in their order.
var watched = []trace.Features{
	trace.WatchClockCalls, trace.WatchLateness, trace.WatchGoScheduler | trace.WatchGoTimers, trace.WatchTimers, trace.WatchProfile,
}

func eventLine(e trace.Event) string { return e.Time.Format("15:04:05.000 ") + e.String() }

func render(head []Column, rows []Row, width int) string {
	w := table.NewWriter()
	style := table.StyleLight
	style.Format.Header = text.FormatDefault
	style.Options = table.Options{SeparateHeader: true}
	w.SetStyle(style)
	names := make(table.Row, len(head))
	configs := make([]table.ColumnConfig, len(head))
	for i, c := range head {
		names[i] = c.Name
		configs[i] = table.ColumnConfig{Number: i + 1, WidthMax: max(width/3, 20), WidthMaxEnforcer: text.WrapSoft}
		if c.Number {
			configs[i].Align, configs[i].AlignHeader = text.AlignRight, text.AlignRight
		}
	}
	w.AppendHeader(names)
	w.SetColumnConfigs(configs)
	for _, r := range rows {
		row := make(table.Row, len(r.Cells))
		for i, cell := range r.Cells {
			row[i] = cell
		}
		w.AppendRow(row)
	}
	var b strings.Builder
	for line := range strings.Lines(w.Render()) {
		b.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return b.String()
}
