package labreport

import (
	"bytes"
	"fmt"
	"html/template"
	"io"
	"math"
	"time"

	"github.com/detent-go/detent/cmd/internal/page"
	"github.com/detent-go/detent/lab"
)

// WriteHTML writes the report as one self-contained page with plots.
func (r Report) WriteHTML(w io.Writer) error {
	view := struct {
		Tally, Stopped string
		Claims         []htmlClaim
		Results        []htmlResult
	}{Tally: r.tally(), Stopped: r.stopped()}
	for _, c := range r.Claims {
		view.Claims = append(view.Claims, htmlClaim{c, verdictTone[c.Verdict]})
	}
	for _, x := range r.Results {
		h := htmlResult{Result: x, Took: x.Took.Round(100 * time.Millisecond)}
		for _, p := range x.Plots {
			html, err := chart(p).HTML()
			if err != nil {
				return err
			}
			h.Charts = append(h.Charts, htmlChart{p.Title, html})
		}
		for i, one := range tables(x) {
			h.Tables = append(h.Tables, htmlOf(one, i == 0))
		}
		view.Results = append(view.Results, h)
	}
	var body bytes.Buffer
	if err := bodyTemplate.Execute(&body, view); err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	return page.Write(w, page.Page{
		Title: "detent lab",
		Lead:  r.machine(),
		Body:  template.HTML(body.String()),
		Foot:  r.made() + " What was published was measured on other machines: compare ratios.",
	})
}

var verdictTone = map[lab.Verdict]string{
	lab.Confirmed: "good", lab.Refuted: "critical", lab.NotTestable: "warning", lab.NotRun: "info",
}

type htmlClaim struct {
	lab.Claim
	Tone string
}

type htmlChart struct {
	Title string
	Plot  template.HTML
}

type htmlResult struct {
	*lab.Result
	Took   time.Duration
	Charts []htmlChart
	Tables []htmlTable
}

type htmlTable struct {
	Title string
	Open  bool
	Head  []htmlCell
	Rows  [][]htmlCell
}

type htmlCell struct {
	Text   string
	Figure bool
}

func htmlOf(one table, open bool) htmlTable {
	cells := func(row []string) (list []htmlCell) {
		for i, text := range row {
			list = append(list, htmlCell{text, i >= one.text})
		}
		return list
	}
	h := htmlTable{Title: one.title, Open: open, Head: cells(one.head)}
	for _, row := range one.rows {
		h.Rows = append(h.Rows, cells(row))
	}
	return h
}

// chart draws a plot.
func chart(p lab.Plot) page.Chart {
	c := page.Chart{ID: "plot-" + p.ID, About: p.Title}
	format := page.Durations
	if p.Unit != lab.Nanoseconds {
		format = page.Numbers
	}
	switch p.Kind {
	case lab.Bars:
		var series []page.Series
		for _, s := range p.Series {
			series = append(series, page.Series{Name: s.Name, Values: s.Values})
		}
		c.Option = page.BarsOf(format, p.Labels, series, !p.Linear)
		c.Height = 60 + len(p.Labels)*(10+14*len(p.Series))
	case lab.Tails, lab.Histogram:
		var curves []page.Curve
		for _, s := range p.Series {
			curves = append(curves, page.Curve{Name: s.Name, Points: s.Points})
		}
		c.Option = page.Distribution(curves, "")
		if p.Kind == lab.Histogram {
			c.Option = page.Histogram(curves)
		}
		c.Height = 360
	case lab.Heat:
		var cells []page.Cell
		for row, s := range p.Series {
			for column, v := range s.Values {
				if v >= 0 {
					cells = append(cells, page.Cell{Column: column, Row: row, Value: math.Max(v, 1), Text: value(&v, p.Unit)})
				}
			}
		}
		c.Option = page.LogMatrix(p.Columns, p.Labels, cells)
		c.Height = 90 + 32*len(p.Labels)
	}
	return c
}

var bodyTemplate = template.Must(template.New("lab").Parse(`
<style>
#claims .tag { white-space: nowrap; }
@media (max-width: 40rem) {
  #claims thead { display: none; }
  #claims tr { display: block; border-bottom: 1px solid var(--line); padding: .5rem 0; }
  #claims td { display: block; border: 0; padding: .1rem 0; overflow-wrap: anywhere; }
  #claims td:first-child { font-weight: 600; float: left; padding-right: .6rem; }
}
</style>
<p class="verdict">{{.Tally}}.{{with .Stopped}} <b>{{.}}</b>{{end}}</p>
<div class="scroll"><table id="claims"><thead><tr><th></th><th>The claim</th><th>Verdict</th><th>Because</th></tr></thead><tbody>
{{- range .Claims}}<tr><td>{{.ID}}</td><td>{{.Says}}</td><td><span class="tag {{.Tone}}">{{.Verdict}}</span></td><td>{{.Because}}</td></tr>{{end}}</tbody></table></div>
{{- range .Results}}
<h2 id="{{.Name}}">{{.Title}}</h2>
<p class="soft">{{.About}} By <code>detent lab run {{.Name}}</code>, in {{.Took}}.</p>
{{- with .Failed}}<p><span class="tag warning">not measured</span>{{.}}</p>{{end}}
{{- range .Charts}}<h3>{{.Title}}</h3>{{.Plot}}{{end}}
{{- range .Tables}}<details{{if .Open}} open{{end}}><summary>{{.Title}}</summary><div class="scroll"><table><thead><tr>{{range .Head}}<th{{if .Figure}} class="num"{{end}}>{{.Text}}</th>{{end}}</tr></thead><tbody>
{{- range .Rows}}<tr>{{range .}}<td{{if .Figure}} class="num"{{end}}>{{.Text}}</td>{{end}}</tr>{{end}}</tbody></table></div></details>{{end}}
{{- with .Skipped}}<ul>{{range .}}<li><span class="tag">skipped</span>{{.}}</li>{{end}}</ul>{{end}}
{{- end}}
`))
