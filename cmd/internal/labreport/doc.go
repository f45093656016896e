// Package labreport shows what a run of the lab has found: to people as text, as
// Markdown and as a page with plots, to machines as JSON.
//
// The claims come first, each with its verdict and the figures that it rests on; then
// each experiment: what the articles printed beside what was measured here, all of
// what was measured, and what could not be, with the reason.
package labreport

import (
	"encoding/json"
	"io"

	"github.com/detent-go/detent/cmd/internal/machine"
	"github.com/detent-go/detent/lab"
)

// A Report is a run of the lab and the machine that it ran on.
type Report struct {
	Machine machine.Info
	*lab.Report
}

// WriteJSON writes the run for machines: the [lab.Report] as it is.
func (r Report) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(r.Report)
}
