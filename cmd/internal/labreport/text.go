package labreport

import (
	"io"
	"strings"
	"time"

	pretty "github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/detent-go/detent/lab"
)

var verdictColors = map[lab.Verdict]text.Colors{
	lab.Confirmed:   {text.FgGreen, text.Bold},
	lab.Refuted:     {text.FgRed, text.Bold},
	lab.NotTestable: {text.FgYellow},
	lab.NotRun:      {text.FgHiBlack},
}

// WriteText writes the report for a terminal that is so many columns wide, in
// colours if color is set.
func (r Report) WriteText(w io.Writer, width int, color bool) error {
	t := &terminal{width: max(width, 60), color: color}
	t.paragraph("", r.tally()+".")
	t.paragraph("", r.machine())
	t.paragraph("", r.made())
	if s := r.stopped(); s != "" {
		t.paragraph("", s)
	}
	t.line("")
	var left []string
	for _, c := range r.Claims {
		if c.Verdict == lab.NotRun && len(r.Results) < len(lab.Experiments()) {
			left = append(left, c.ID)
			continue
		}
		t.line(t.paint(text.Colors{text.Bold}, c.ID) + "  " + t.paint(verdictColors[c.Verdict], strings.ToUpper(string(c.Verdict))))
		t.paragraph("     ", c.Says+".")
		t.paragraph("     => ", c.Because)
	}
	if len(left) > 0 {
		t.paragraph("", strings.ToUpper(string(lab.NotRun))+", for want of their experiments: "+strings.Join(left, " "))
	}
	for _, x := range r.Results {
		t.result(x)
	}
	_, err := io.WriteString(w, t.b.String())
	return err
}

type terminal struct {
	b     strings.Builder
	width int
	color bool
}

func (t *terminal) paint(c text.Colors, s string) string {
	if !t.color {
		return s
	}
	return c.Sprint(s)
}

func (t *terminal) line(s string) { t.b.WriteString(strings.TrimRight(s, " ") + "\n") }

// paragraph writes s with line breaks; the first line after mark, the others below
// its text.
func (t *terminal) paragraph(mark, s string) {
	for line := range strings.SplitSeq(text.WrapSoft(s, t.width-len(mark)), "\n") {
		t.line(mark + line)
		mark = strings.Repeat(" ", len(mark))
	}
}

func (t *terminal) result(x *lab.Result) {
	t.line("")
	t.line(t.paint(text.Colors{text.Bold}, x.Name+": "+x.Title) + " (" + x.Took.Round(100*time.Millisecond).String() + ")")
	t.paragraph("", x.About)
	if x.Failed != "" {
		t.paragraph("- ", "not measured: "+x.Failed)
	}
	for _, one := range tables(x) {
		t.line("")
		t.line(one.title)
		t.table(one)
	}
	if len(x.Skipped) > 0 {
		t.line("")
	}
	for _, s := range x.Skipped {
		t.paragraph("- ", "skipped: "+s)
	}
}

func (t *terminal) table(one table) {
	// Headings of many columns are broken, lest a table of engines become wider than
	// the terminal.
	wide := max((t.width-24)/max(len(one.head)-1, 1)-2, 10)
	w := render(one, wide)
	style := pretty.StyleLight
	style.Format.Header = text.FormatDefault
	style.Options = pretty.Options{SeparateHeader: true}
	w.SetStyle(style)
	for line := range strings.Lines(w.Render()) {
		t.line(strings.TrimRight(line, "\n"))
	}
}

// render fills a table; wide is the width of its columns, the first excepted, 0 for
// no limit.
func render(one table, wide int) pretty.Writer {
	w := pretty.NewWriter()
	head := make(pretty.Row, len(one.head))
	var columns []pretty.ColumnConfig
	for i, h := range one.head {
		head[i] = h
		c := pretty.ColumnConfig{Number: i + 1}
		if i >= one.text {
			c.Align, c.AlignHeader = text.AlignRight, text.AlignRight
		}
		if wide > 0 {
			c.WidthMax, c.WidthMaxEnforcer = wide, text.WrapSoft
			if i < one.text {
				c.WidthMax = max(wide, 30)
			}
		}
		columns = append(columns, c)
	}
	w.AppendHeader(head)
	w.SetColumnConfigs(columns)
	for _, r := range one.rows {
		row := make(pretty.Row, len(r))
		for i, cell := range r {
			row[i] = cell
		}
		w.AppendRow(row)
	}
	return w
}
