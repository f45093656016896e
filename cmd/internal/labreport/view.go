package labreport

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/detent-go/detent/lab"
)

// A table is what all forms of the report show.
type table struct {
	title string
	head  []string
	text  int // so many columns at the left are text, the rest are figures
	rows  [][]string
}

// tally counts the verdicts, in words.
func (r Report) tally() string {
	var parts []string
	for _, v := range []lab.Verdict{lab.Confirmed, lab.Refuted, lab.NotTestable, lab.NotRun} {
		n := 0
		for _, c := range r.Claims {
			if c.Verdict == v {
				n++
			}
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, v))
		}
	}
	return fmt.Sprintf("%s of the articles: %s", plural(len(r.Claims), "claim", "claims"), strings.Join(parts, ", "))
}

// machine says what the figures depend on.
func (r Report) machine() string {
	m := r.Machine
	s := fmt.Sprintf("%s, %d CPUs, %s/%s, %s, clocksource %s, %s, GOMAXPROCS %d, detent woken by %s",
		m.CPUModel, m.CPUs, m.OS, m.Arch, m.Kernel, m.Clocksource, m.Go, m.GOMAXPROCS, m.Waker)
	if len(m.Environment) > 0 {
		s += ", " + strings.Join(m.Environment, " ")
	}
	return s
}

// made says when and how.
func (r Report) made() string {
	s := fmt.Sprintf("Measured %s in %v", r.Made.Format("2006-01-02 15:04 UTC"), r.Took.Round(time.Second))
	if r.Short {
		s += ", in the short form: few rounds, and at most a million timers"
	}
	return s + "."
}

// stopped says that something is missing, if so.
func (r Report) stopped() string {
	if r.Stopped == "" {
		return ""
	}
	return fmt.Sprintf("The run was stopped (%s): what follows is what it had until then.", r.Stopped)
}

func (r Report) claims() table {
	t := table{head: []string{"", "the claim", "verdict", "because"}, text: 4}
	for _, c := range r.Claims {
		t.rows = append(t.rows, []string{c.ID, c.Says, string(c.Verdict), c.Because})
	}
	return t
}

// tables are those of one experiment: what was published first.
func tables(x *lab.Result) []table {
	list := []table{beside(x.Figures)}
	var left []lab.Figure // what makes no table of two ways
	for _, group := range groups(x.Figures) {
		if t, ok := crossed(group); ok {
			list = append(list, t)
		} else {
			left = append(left, group...)
		}
	}
	list = append(list, listed(left))
	return slices.DeleteFunc(list, func(t table) bool { return len(t.rows) == 0 })
}

// beside has the figures that an article printed, with those of this machine.
func beside(figures []lab.Figure) table {
	t := table{title: "Published, and here", head: []string{"", "of", "published of", "", "published", "here", "ratio"}, text: 4}
	last := ""
	for _, f := range figures {
		if f.Published == nil {
			continue
		}
		what := f.What
		if what == last {
			what = ""
		}
		last = f.What
		t.rows = append(t.rows, []string{what, f.Who, f.By, f.Case, value(f.Published, f.Unit), value(f.Here, f.Unit), ratio(f.Here, f.Published)})
	}
	if !slices.ContainsFunc(t.rows, func(row []string) bool { return row[2] != "" }) {
		t.head = slices.Delete(t.head, 2, 3)
		for i := range t.rows {
			t.rows[i] = slices.Delete(t.rows[i], 2, 3)
		}
		t.text--
	}
	return t
}

// groups are the figures that belong into one table, in their order: those of one
// thing, or all things that there is but this one case of.
func groups(figures []lab.Figure) [][]lab.Figure {
	measured := slices.DeleteFunc(slices.Clone(figures), func(f lab.Figure) bool { return f.Here == nil })
	cases := map[string][]string{}
	for _, f := range measured {
		if !slices.Contains(cases[f.What], f.Case) {
			cases[f.What] = append(cases[f.What], f.Case)
		}
	}
	table := func(f lab.Figure) string {
		if len(cases[f.What]) == 1 {
			return "case " + f.Case
		}
		return "thing " + f.What
	}
	var list [][]lab.Figure
	for _, name := range unique(measured, table) {
		list = append(list, slices.DeleteFunc(slices.Clone(measured), func(f lab.Figure) bool { return table(f) != name }))
	}
	return list
}

// crossed returns a table with a row for each engine or clock, and a column for each
// case; where there is but one case, with a row for each thing and a column for each
// engine, or the other way round if there are fewer things. It reports whether that
// table is worth having: half full, and of two rows and columns.
func crossed(group []lab.Figure) (table, bool) {
	who := func(f lab.Figure) string { return f.Who }
	row, column := who, func(f lab.Figure) string { return f.Case }
	t := table{text: 1}
	if len(group) > 0 {
		t.title = group[0].What
	}
	if cases := unique(group, column); len(cases) == 1 {
		column = func(f lab.Figure) string { return f.What }
		t.title = cases[0]
		if len(unique(group, column)) > 6 {
			row, column = column, who
		}
	}
	rows, columns := unique(group, row), unique(group, column)
	if len(rows) < 2 || len(columns) < 2 || 2*len(group) < len(rows)*len(columns) {
		return table{}, false
	}
	t.head = append([]string{""}, columns...)
	for _, r := range rows {
		cells := []string{r}
		for _, c := range columns {
			cell := ""
			for _, f := range group {
				if row(f) == r && column(f) == c {
					cell = value(f.Here, f.Unit)
				}
			}
			cells = append(cells, cell)
		}
		t.rows = append(t.rows, cells)
	}
	return t, true
}

// listed has a row for each figure that was measured and not published.
func listed(figures []lab.Figure) table {
	t := table{title: "Measured", head: []string{"", "of", "", "here"}, text: 3}
	for _, f := range figures {
		if f.Here != nil && f.Published == nil {
			t.rows = append(t.rows, []string{f.What, f.Who, f.Case, value(f.Here, f.Unit)})
		}
	}
	return t
}

// unique returns what of gives of the figures, each once, in their order.
func unique(figures []lab.Figure, of func(lab.Figure) string) []string {
	var list []string
	for _, f := range figures {
		if s := of(f); !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list
}
