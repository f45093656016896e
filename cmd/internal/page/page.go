// Package page writes self-contained HTML pages with plots: one file that needs
// nothing from elsewhere, for a browser and for paper, in a light and a dark dress.
//
// Plots are drawn by Apache ECharts, which the page carries, from an option
// object as ECharts defines it. Beside each plot stands what it shows as text or a
// table: a page says the same without a script.
package page

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"strings"
)

//go:embed assets/page.css assets/page.js assets/echarts.min.js
var assets embed.FS

// EChartsVersion is that of the library in assets.
const EChartsVersion = "6.1.0"

func asset(name string) string {
	b, err := assets.ReadFile("assets/" + name)
	if err != nil {
		panic("page: " + err.Error()) // It is compiled in.
	}
	return string(b)
}

// CSS is the look of all pages.
func CSS() template.CSS { return template.CSS(asset("page.css")) }

// Script draws the plots of a page, and holds the library that it needs.
func Script() template.JS {
	return template.JS(asset("echarts.min.js") + "\n" + asset("page.js"))
}

// A Page is what is written.
type Page struct {
	Title string
	Lead  string // one line under the title
	Body  template.HTML
	Foot  string // one line at the end
}

var layout = template.Must(template.New("page").Parse(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{{.Title}}</title>
<link rel="icon" href="data:,">
<style>{{.CSS}}</style>
</head>
<body>
<main>
<header><h1>{{.Title}}</h1>{{with .Lead}}<p class="lead">{{.}}</p>{{end}}</header>
{{.Body}}
<footer>{{.Foot}}</footer>
</main>
<script>{{.Script}}</script>
</body>
</html>
`))

// Write writes p.
func Write(w io.Writer, p Page) error {
	var b bytes.Buffer
	err := layout.Execute(&b, struct {
		Page
		CSS    template.CSS
		Script template.JS
	}{p, CSS(), Script()})
	if err != nil {
		return fmt.Errorf("page: %w", err)
	}
	_, err = w.Write(b.Bytes())
	return err
}

// A Chart is a plot.
type Chart struct {
	ID     string // unique in the page
	About  string // what it shows, in a sentence: for those who cannot see it
	Height int    // in pixels
	Option Option
}

// An Option is ECharts' option object. Strings that begin with "fn:" name a
// function of page.js, which takes the place of the string: a page holds no other
// code than that.
type Option map[string]any

// HTML returns the place where page.js draws the chart.
func (c Chart) HTML() (template.HTML, error) {
	// json.Marshal escapes <, > and &, so the text cannot end the element.
	option, err := json.Marshal(c.Option)
	if err != nil {
		return "", fmt.Errorf("page: chart %s: %w", c.ID, err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<figure class="chart"><div id="%s" role="img" aria-label="%s" style="height:%dpx"></div>`,
		template.HTMLEscapeString(c.ID), template.HTMLEscapeString(c.About), c.Height)
	fmt.Fprintf(&b, `<script type="application/json" class="option" data-for="%s">%s</script></figure>`,
		template.HTMLEscapeString(c.ID), option)
	return template.HTML(b.String()), nil
}
