package bench

import (
	"fmt"
	"io"
	"strings"

	"github.com/detent-go/detent/cmd/internal/machine"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// WriteTable writes the report for a person, in colors if color is set.
func (r *Report) WriteTable(w io.Writer, color bool) error {
	var b strings.Builder
	r.writeHead(&b)
	r.writeRows(&b, color)
	r.writeFoot(&b, color)
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Report) writeHead(b *strings.Builder) {
	m := r.Machine
	line := func(name string, parts ...string) {
		fmt.Fprintf(b, "  %-9s %s\n", name, strings.Join(parts, ", "))
	}
	fmt.Fprintf(b, "detent beside package time: the %s form, %s in turn, medians\n\n", r.Settings.Form, plural(r.Settings.Rounds, "round"))
	parts := []string{m.CPUModel, plural(m.CPUs, "CPU")}
	if m.MemoryBytes > 0 {
		parts = append(parts, machine.Gigabytes(m.MemoryBytes))
	}
	line("machine", parts...)
	line("kernel", m.Kernel, "clocksource "+m.Clocksource)
	line("go", m.Go+" "+m.OS+"/"+m.Arch, fmt.Sprintf("GOMAXPROCS %d", r.Settings.Procs))
	if m.WakerReason != "" {
		line("waker", m.Waker+" ("+m.WakerReason+")")
	} else {
		line("waker", m.Waker)
	}
	if len(m.Environment) > 0 {
		line("set", m.Environment...)
	}
	b.WriteByte('\n')
}

// writeRows writes a block for each scenario.
func (r *Report) writeRows(b *strings.Builder, color bool) {
	if len(r.Rows) == 0 {
		b.WriteString("Nothing has been measured.\n\n")
		return
	}
	titles := map[string]string{}
	for _, sc := range Scenarios() {
		titles[sc.Name] = sc.Title
	}
	t := table.NewWriter()
	style := table.StyleLight
	style.Options = table.Options{SeparateHeader: true, SeparateRows: false}
	style.Format.Header = text.FormatDefault
	t.SetStyle(style)
	t.AppendHeader(table.Row{"", "time", "detent", "times better", "range", ""})
	t.SetColumnConfigs([]table.ColumnConfig{
		{Number: 2, Align: text.AlignRight, AlignHeader: text.AlignRight},
		{Number: 3, Align: text.AlignRight, AlignHeader: text.AlignRight},
		{Number: 4, Align: text.AlignRight, AlignHeader: text.AlignRight},
	})
	scenario := ""
	for _, row := range r.Rows {
		if scenario != row.Scenario {
			if scenario != "" {
				t.AppendRow(table.Row{})
			}
			scenario = row.Scenario
			t.AppendRow(table.Row{paint(color, scenario+": "+titles[scenario], text.Bold)})
		}
		other := row.spec.unit.format(row.other())
		if row.Against != Time {
			other = "(" + other + ")"
		}
		middle, spread := formatSpread(row)
		t.AppendRow(table.Row{
			"  " + row.name(), other, row.spec.unit.format(row.detent()),
			middle, spread, verdictText(row.Verdict, color),
		})
	}
	for line := range strings.Lines(t.Render()) {
		b.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	b.WriteByte('\n')
}

// writeFoot sums up, and names again where detent is not better.
func (r *Report) writeFoot(b *strings.Builder, color bool) {
	fmt.Fprintf(b, "%s: %s, %d the same within noise, %s.\n",
		plural(len(r.Rows), "comparison"),
		paint(color && r.Summary.Better > 0, fmt.Sprintf("%d better", r.Summary.Better), text.FgGreen), r.Summary.Same,
		paint(color && r.Summary.Worse > 0, fmt.Sprintf("%d worse", r.Summary.Worse), text.FgRed))
	if worse := r.with(Worse); len(worse) > 0 {
		b.WriteString("\nWhere detent is worse:\n")
		for _, row := range worse {
			middle, _ := formatSpread(row)
			fmt.Fprintf(b, "  %s, %s: %s, not %s (%s)\n", row.Scenario, row.name(),
				row.spec.unit.format(row.detent()), row.spec.unit.format(row.other()), middle)
		}
	}
	if len(r.Missing) > 0 {
		b.WriteString("\nNot measured:\n")
		for _, m := range r.Missing {
			fmt.Fprintf(b, "  %s, %s: %s\n", m.Scenario, m.Case, m.Reason)
		}
	}
	if len(r.Notes) > 0 {
		b.WriteString("\nNote:\n")
		for _, n := range r.Notes {
			fmt.Fprintf(b, "  %s\n", n)
		}
	}
	b.WriteString("\n" + legend)
	if r.Settings.Rounds < 5 {
		fmt.Fprintf(b, "With %s the range says little; take 5 or more.\n", plural(r.Settings.Rounds, "round"))
	}
	if r.Stopped != "" {
		fmt.Fprintf(b, "Stopped after %.0f s (%s): what is above had been measured by then.\n", r.ElapsedS, r.Stopped)
		return
	}
	fmt.Fprintf(b, "Took %.0f s.\n", r.ElapsedS)
}

// legend says how to read the comparison.
var legend = fmt.Sprintf(`"times better" compares the two round by round and is the median of that; above 1 detent is better. A figure
with a sign is a difference, detent less time. In brackets: not package time, but what the row names. The range
holds the true median with %.0f %% confidence. Better or worse is said only where all of the range is on that side
and the median by more than noise.
`, confidence*100)

func verdictText(v Verdict, color bool) string {
	switch v {
	case Better:
		return paint(color, "better", text.FgGreen)
	case Worse:
		return paint(color, "WORSE", text.FgRed, text.Bold)
	}
	return "same"
}

// paint colors s, if it may, whatever the library thinks of the terminal.
func paint(color bool, s string, colors ...text.Color) string {
	if !color {
		return s
	}
	return text.Colors(colors).EscapeSeq() + s + text.Reset.EscapeSeq()
}

// plural writes a count of things.
func plural(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}
