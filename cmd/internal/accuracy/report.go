package accuracy

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/detent-go/detent/cmd/internal/load"
)

// WriteJSON writes the report for machines.
func (r *Report) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

// WriteText writes the report for a person at a terminal.
func (r *Report) WriteText(w io.Writer) error {
	return r.write(w, func(t table.Writer) string {
		style := table.StyleLight
		style.Format.Header = text.FormatDefault
		style.Options = table.Options{SeparateHeader: true}
		t.SetStyle(style)
		return t.Render()
	}, "")
}

// WriteMarkdown writes the report as the page docs/accuracy.md.
func (r *Report) WriteMarkdown(w io.Writer) error {
	return r.write(w, func(t table.Writer) string {
		return t.RenderMarkdown()
	}, "# ")
}

// write writes the report; mark goes before headings.
func (r *Report) write(w io.Writer, render func(table.Writer) string, mark string) error {
	var b strings.Builder
	heading := func(level int, s string) {
		if mark != "" {
			fmt.Fprintf(&b, "%s %s\n\n", strings.Repeat(strings.TrimSpace(mark), level), s)
			return
		}
		fmt.Fprintf(&b, "%s\n\n", s)
	}
	heading(1, "Accuracy")
	b.WriteString(promise)
	b.WriteString("\n")
	m := r.Machine
	fmt.Fprintf(&b, "Measured %s on %s, %d CPUs, %s, clocksource %s, %s, GOMAXPROCS %d, detent woken by %s, by\n\n    %s\n\n",
		r.Made.Format(time.DateOnly), m.CPUModel, m.CPUs, m.Kernel, m.Clocksource, m.Go, m.GOMAXPROCS, m.Waker, command)
	fmt.Fprintf(&b, "in %d rounds of %v each. Figures are of that machine, and of what else it did then: compare them with each other.\n\n",
		r.Plan.Rounds, r.Plan.Window)
	if r.Stopped != "" {
		fmt.Fprintf(&b, "The run was stopped (%s): what follows is what it had until then.\n\n", r.Stopped)
	}

	heading(2, "Lateness by slack and load")
	fmt.Fprintf(&b, "Waits of %v to %v at random, one after another: by how much later than its deadline each ended, p50 / p99 in microseconds. Ended early: %d.\n\n",
		shortest, longest, r.Early())
	b.WriteString(render(r.latenessTable()) + "\n\n")
	fmt.Fprintf(&b, "%q does not sleep at all: what it is late by, the machine takes from anybody, by interrupts, other threads, and the host of a virtual machine. No way that sleeps can be better.\n\n", wayNever)

	heading(2, "Rate limiters")
	b.WriteString("A limiter waits by each way; events a second are the median of the rounds, and the gap is from one event to the next.\n\n")
	b.WriteString(render(r.rateTable()) + "\n")
	if len(r.Missing) > 0 {
		b.WriteString("\n")
		heading(2, "Not measured")
		for _, x := range r.Missing {
			fmt.Fprintf(&b, "- %s: %s\n", x.Way, x.Reason)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// command makes the page.
const command = "go run ./cmd/detent accuracy --markdown"

const promise = `What detent promises, whatever the machine does:

- Never early: a timer fires when its deadline has passed by the service's
  clock, and not before.
- By its own choice it is late by its slack at most. All else is the machine's:
  the kernel's timer, the CPU's other threads, the Go scheduler.

What the machine adds depends on how a timer is waited for and on what the Go
scheduler has to do meanwhile. While every P is busy a goroutine that is to run has
to wait for its turn, whoever wakes it; a callback on a lane runs on the lane's own
thread, and does not.
`

func (r *Report) latenessTable() table.Writer {
	t := table.NewWriter()
	head := table.Row{"way", "slack"}
	for _, k := range load.Kinds() {
		head = append(head, string(k))
	}
	t.AppendHeader(head)
	rows := map[string]table.Row{}
	var order []string
	for _, c := range r.Cells {
		if rows[c.Way] == nil {
			rows[c.Way] = table.Row{c.Way, c.Slack}
			order = append(order, c.Way)
		}
		rows[c.Way] = append(rows[c.Way], micros(c.P50)+" / "+micros(c.P99))
	}
	for _, name := range order {
		t.AppendRow(rows[name])
	}
	var columns []table.ColumnConfig
	for k := range load.Kinds() {
		columns = append(columns, rightAligned(3+k))
	}
	t.SetColumnConfigs(columns)
	return t
}

func (r *Report) rateTable() table.Writer {
	t := table.NewWriter()
	t.AppendHeader(table.Row{"limiter", "asked a second", "way", "achieved a second", "gap p1 / p50 / p99, us", "CPU ms a second"})
	for _, p := range r.Paces {
		cpu := "unknown"
		if p.CPU >= 0 {
			cpu = fmt.Sprintf("%.0f", p.CPU)
		}
		t.AppendRow(table.Row{p.Limiter, p.Asked, p.Way, fmt.Sprintf("%.0f", p.Achieved),
			micros(p.GapP1) + " / " + micros(p.GapP50) + " / " + micros(p.GapP99), cpu})
	}
	t.SetColumnConfigs([]table.ColumnConfig{rightAligned(2), rightAligned(4), rightAligned(5), rightAligned(6)})
	return t
}

func rightAligned(column int) table.ColumnConfig {
	return table.ColumnConfig{Number: column, Align: text.AlignRight, AlignHeader: text.AlignRight}
}

// micros formats nanoseconds as microseconds.
func micros(ns int64) string {
	us := float64(ns) / 1e3
	if us < 10 {
		return fmt.Sprintf("%.1f", us)
	}
	return fmt.Sprintf("%.0f", us)
}
