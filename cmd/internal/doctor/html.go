package doctor

import (
	"bytes"
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"

	"github.com/detent-go/detent/cmd/internal/page"
	"github.com/detent-go/detent/probe"
)

// WriteHTML writes the report as one self-contained page.
func WriteHTML(w io.Writer, r *probe.Report) error {
	view := struct {
		Tone, Verdict string
		Findings      []cause
		Sections      []htmlSection
		Unseen        []unseen
	}{Tone: tone(r), Verdict: Verdict(r), Findings: tree(r.Findings())}
	for _, s := range sections(r) {
		h := htmlSection{Title: s.title, Note: s.note}
		for i, name := range s.head {
			h.Head = append(h.Head, htmlCell{name, i >= s.text})
		}
		for _, row := range s.rows {
			var cells []htmlCell
			for i, c := range row {
				cells = append(cells, htmlCell{c, i >= s.text})
			}
			h.Rows = append(h.Rows, cells)
		}
		for _, c := range s.charts {
			html, err := c.HTML()
			if err != nil {
				return err
			}
			h.Charts = append(h.Charts, html)
		}
		view.Sections = append(view.Sections, h)
	}
	for _, u := range Unseen(r) {
		view.Unseen = append(view.Unseen, unseen{u.Check, strings.ReplaceAll(u.Err.Error(), "\n", "; ")})
	}
	var body bytes.Buffer
	if err := bodyTemplate.Execute(&body, view); err != nil {
		return fmt.Errorf("doctor: %w", err)
	}
	return page.Write(w, page.Page{
		Title: "detent doctor",
		Lead:  Machine(r.Machine),
		Body:  template.HTML(body.String()),
		Foot: fmt.Sprintf("Measured %s in %v, %s.", r.Started.UTC().Format("2006-01-02 15:04 UTC"),
			r.Took.Round(100*time.Millisecond), plural(len(r.Results), "check", "checks")),
	})
}

type htmlCell struct {
	Text   string
	Figure bool
}

type htmlSection struct {
	Title, Note string
	Head        []htmlCell
	Rows        [][]htmlCell
	Charts      []template.HTML
}

type unseen struct{ Check, Why string }

// tone is the colour of the verdict.
func tone(r *probe.Report) string {
	if r.Worst() < probe.Warning {
		return "good"
	}
	return r.Worst().String()
}

var bodyTemplate = template.Must(template.New("doctor").Parse(`
<p class="verdict {{.Tone}}">{{.Verdict}}</p>
{{- range .Findings}}{{template "finding" .}}{{end}}
{{- define "finding"}}
<section class="finding {{.Severity}}" id="{{.ID}}">
<h3><span class="tag {{.Severity}}">{{.Severity}}</span>{{if ne .Confidence.String "certain"}}<span class="tag">{{.Confidence}}</span>{{end}}{{with .Because}}<span class="soft">because of <a href="#{{.}}"><code>{{.}}</code></a>:</span> {{end}}{{.Title}}</h3>
{{- with .Detail}}<p>{{.}}</p>{{end}}
{{- with .Evidence}}<dl>{{range .}}<dt>{{.Name}}</dt><dd>{{.Value}}{{with .Source}} <span class="soft">({{.}})</span>{{end}}</dd>{{end}}</dl>{{end}}
{{- range .Remedy}}<pre>{{.}}</pre>{{end}}
<p class="soft"><code>{{.ID}}</code></p>
{{- range .Explains}}{{template "finding" .}}{{end}}
</section>
{{- end}}
{{- range .Sections}}
<h2>{{.Title}}</h2>
{{- with .Note}}<p class="soft">{{.}}</p>{{end}}
{{- range .Charts}}{{.}}{{end}}
{{- if .Rows}}<div class="scroll"><table><thead><tr>{{range .Head}}<th{{if .Figure}} class="num"{{end}}>{{.Text}}</th>{{end}}</tr></thead><tbody>
{{- range .Rows}}<tr>{{range .}}<td{{if .Figure}} class="num"{{end}}>{{.Text}}</td>{{end}}</tr>{{end}}</tbody></table></div>{{end}}
{{- end}}
{{- with .Unseen}}
<h2>What could not be seen</h2>
<ul>{{range .}}<li><b>{{.Check}}</b>: {{.Why}}</li>{{end}}</ul>
{{- end}}
`))
