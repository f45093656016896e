package labreport

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// command makes the page.
const command = "go run ./cmd/detent lab all --markdown > docs/lab.md"

const preface = `Public articles about Go's timers and clocks have printed figures and made claims.
The lab makes their experiments again, over engines that work as the Go runtime's
did at the time, over others that the articles set against them, and over package
time and detent of today.

What an article printed was measured on another machine, of another year: compare
ratios, and figures of one column with each other. Verdicts rest on the figures of
this run alone.
`

// WriteMarkdown writes the report as the page docs/lab.md.
func (r Report) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	b.WriteString("# The lab\n\n" + preface + "\n")
	fmt.Fprintf(&b, "Made on %s.\n%s By\n\n    %s\n\n", r.machine(), r.made(), r.command())
	if s := r.stopped(); s != "" {
		b.WriteString(s + "\n\n")
	}
	b.WriteString("## The claims\n\n" + r.tally() + ".\n\n")
	markdownTable(&b, r.claims())
	for _, x := range r.Results {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", x.Title, x.About)
		fmt.Fprintf(&b, "By `detent lab run %s`, in %v.\n", x.Name, x.Took.Round(100*time.Millisecond))
		if x.Failed != "" {
			fmt.Fprintf(&b, "\nNot measured: %s.\n", x.Failed)
		}
		for _, one := range tables(x) {
			fmt.Fprintf(&b, "\n### %s\n\n", one.title)
			markdownTable(&b, one)
		}
		if len(x.Skipped) > 0 {
			b.WriteString("\nNot measured:\n\n")
		}
		for _, s := range x.Skipped {
			fmt.Fprintf(&b, "- %s\n", s)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// command is that of the page, with --short for a short run.
func (r Report) command() string {
	flags := ""
	if r.Short {
		flags += "--short "
	}
	if r.Switch {
		flags += "--switch-clocksource "
	}
	return strings.Replace(command, "--markdown", flags+"--markdown", 1)
}

func markdownTable(b *strings.Builder, one table) {
	b.WriteString(render(one, 0).RenderMarkdown() + "\n")
}
