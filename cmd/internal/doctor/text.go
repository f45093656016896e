package doctor

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/detent-go/detent/probe"
)

// WriteText writes the report for a terminal that is so many columns wide, in
// colours if color is set.
func WriteText(w io.Writer, r *probe.Report, width int, color bool) error {
	t := &terminal{width: max(width, 40), color: color}
	t.verdict(r)
	t.causes(tree(r.Findings()), 0)
	for _, s := range sections(r) {
		t.section(s)
	}
	t.unseen(r)
	_, err := io.WriteString(w, t.b.String())
	return err
}

// WriteMeasured writes what was measured, without a verdict: the findings, if there
// are any, and the tables and histograms.
func WriteMeasured(w io.Writer, r *probe.Report, width int, color bool) error {
	t := &terminal{width: max(width, 40), color: color, detailed: true}
	t.paragraph(0, "", Machine(r.Machine))
	t.b.WriteString("\n")
	for _, s := range sections(r) {
		t.section(s)
	}
	t.causes(tree(r.Findings()), 0)
	t.unseen(r)
	_, err := io.WriteString(w, t.b.String())
	return err
}

type terminal struct {
	b        strings.Builder
	width    int
	color    bool
	detailed bool
}

var severityColors = map[probe.Severity]text.Colors{
	probe.Info:     {text.FgHiBlack},
	probe.Notice:   {text.FgBlue},
	probe.Warning:  {text.FgYellow, text.Bold},
	probe.Critical: {text.FgRed, text.Bold},
}

func (t *terminal) paint(c text.Colors, s string) string {
	if !t.color {
		return s
	}
	return c.Sprint(s)
}

// paragraph writes s with line breaks, indented; the first line after mark.
func (t *terminal) paragraph(indent int, mark, s string) {
	lines := strings.Split(text.WrapSoft(s, max(t.width-indent-len(mark), 20)), "\n")
	for i, line := range lines {
		if i > 0 {
			mark = strings.Repeat(" ", len(mark))
		}
		t.b.WriteString(strings.TrimRight(strings.Repeat(" ", indent)+mark+line, " ") + "\n")
	}
}

func (t *terminal) verdict(r *probe.Report) {
	c := severityColors[r.Worst()]
	if r.Worst() < probe.Warning {
		c = text.Colors{text.FgGreen, text.Bold}
	}
	for _, line := range strings.Split(text.WrapSoft(Verdict(r), t.width), "\n") {
		t.b.WriteString(t.paint(c, strings.TrimRight(line, " ")) + "\n")
	}
	t.paragraph(0, "", Machine(r.Machine))
	fmt.Fprintf(&t.b, "%s in %v.\n\n", plural(len(r.Results), "check", "checks"), r.Took.Round(100*time.Millisecond))
}

// causes writes findings, and under each, further in, those that it explains.
func (t *terminal) causes(list []cause, indent int) {
	for _, c := range list {
		t.finding(c.Finding, indent)
		t.causes(c.Explains, min(indent+4, t.width/4))
	}
}

func (t *terminal) finding(f probe.Finding, indent int) {
	c := severityColors[f.Severity]
	head := strings.ToUpper(f.Severity.String())
	if f.Confidence != probe.Certain {
		head += " (" + f.Confidence.String() + ")"
	}
	because := ""
	if f.Because != "" {
		because = " because of " + f.Because
	}
	margin := strings.Repeat(" ", indent)
	for i, line := range strings.Split(text.WrapSoft(head+because+": "+f.Title, max(t.width-indent, 20)), "\n") {
		line = strings.TrimRight(line, " ")
		if i == 0 {
			line = t.paint(c, head) + strings.TrimPrefix(line, head)
		}
		t.b.WriteString(margin + line + "\n")
	}
	indent += 4
	margin += "    "
	if f.Detail != "" {
		t.paragraph(indent, "", f.Detail)
	}
	for _, e := range f.Evidence {
		line := e.Name + ": " + e.Value
		if e.Source != "" {
			line += "  [" + e.Source + "]"
		}
		t.paragraph(indent, "- ", line)
	}
	for i, step := range f.Remedy {
		mark := "=> "
		if len(f.Remedy) > 1 {
			mark = fmt.Sprintf("=> %d. ", i+1)
		}
		// Not wrapped: a command is copied from here.
		t.b.WriteString(margin + mark + step + "\n")
	}
	t.b.WriteString(margin + t.paint(severityColors[probe.Info], f.ID) + "\n\n")
}

func (t *terminal) section(s section) {
	t.b.WriteString(t.paint(text.Colors{text.Bold}, s.title) + "\n")
	if s.note != "" {
		t.paragraph(0, "", s.note)
	}
	if len(s.rows) > 0 {
		t.b.WriteString(t.table(s))
	}
	for _, b := range s.bars {
		if t.detailed || !b.detail {
			t.bars(b)
		}
	}
	t.b.WriteString("\n")
}

// table draws the rows, without as many of the minor columns as it takes to fit, and
// says so.
func (t *terminal) table(s section) string {
	for n := 0; ; n++ {
		drawn := t.columns(s, s.minor[:n])
		widest := 0
		for line := range strings.Lines(drawn) {
			widest = max(widest, text.StringWidth(strings.TrimRight(line, "\n")))
		}
		if widest <= t.width || n == len(s.minor) {
			if n > 0 {
				drawn += text.WrapSoft("Left out for want of width: "+strings.Join(pick(s.head, s.minor[:n]), ", ")+".", t.width) + "\n"
			}
			return drawn
		}
	}
}

// pick returns those of a list that are at the places.
func pick(list []string, places []int) []string {
	var picked []string
	for _, i := range places {
		picked = append(picked, list[i])
	}
	return picked
}

// columns draws the rows but for some columns.
func (t *terminal) columns(s section, without []int) string {
	w := table.NewWriter()
	style := table.StyleLight
	style.Format.Header = text.FormatDefault
	style.Options = table.Options{SeparateHeader: true}
	w.SetStyle(style)
	cells := func(list []string) (row table.Row) {
		for i, cell := range list {
			if !slices.Contains(without, i) {
				row = append(row, cell)
			}
		}
		return row
	}
	head := cells(s.head)
	var columns []table.ColumnConfig
	for i := range head {
		c := table.ColumnConfig{Number: i + 1, WidthMax: max(t.width/3, 18), WidthMaxEnforcer: text.WrapSoft}
		if i >= s.text-len(pickBelow(without, s.text)) {
			c.Align, c.AlignHeader = text.AlignRight, text.AlignRight
		}
		columns = append(columns, c)
	}
	w.AppendHeader(head)
	w.SetColumnConfigs(columns)
	for _, r := range s.rows {
		w.AppendRow(cells(r))
	}
	var b strings.Builder
	for line := range strings.Lines(w.Render()) {
		b.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return b.String()
}

// pickBelow returns the places that are before a limit.
func pickBelow(places []int, limit int) []int {
	return slices.DeleteFunc(slices.Clone(places), func(i int) bool { return i >= limit })
}

// barEighths are the ends of a bar.
var barEighths = []rune(" ▏▎▍▌▋▊▉")

// bars draws a histogram: the widest bar takes what is left of the line.
func (t *terminal) bars(h bars) {
	t.b.WriteString("\n  " + h.title + "\n")
	label, note, most := 0, 0, 0.0
	for _, r := range h.rows {
		label, note, most = max(label, len(r.label)), max(note, len(r.text)), max(most, r.value)
	}
	room := float64(max(t.width-label-note-6, 10))
	for _, r := range h.rows {
		eighths := 0
		if most > 0 && r.value > 0 {
			eighths = max(int(math.Round(r.value/most*room*8)), 1)
		}
		drawn := strings.Repeat("█", eighths/8)
		if eighths%8 > 0 {
			drawn += string(barEighths[eighths%8])
		}
		if drawn != "" {
			drawn = t.paint(text.Colors{text.FgCyan}, drawn)
		}
		line := fmt.Sprintf("  %*s %*s %s", label, r.label, note, r.text, drawn)
		t.b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

func (t *terminal) unseen(r *probe.Report) {
	list := Unseen(r)
	if len(list) == 0 {
		return
	}
	t.b.WriteString(t.paint(text.Colors{text.Bold}, "What could not be seen") + "\n")
	for _, u := range list {
		t.paragraph(0, "- ", u.Check+": "+strings.ReplaceAll(u.Err.Error(), "\n", "; "))
	}
}
