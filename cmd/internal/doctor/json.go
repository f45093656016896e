package doctor

import (
	"encoding/json"
	"io"

	"github.com/detent-go/detent/probe"
)

// WriteJSON writes the report for machines: the verdict, the findings worst first,
// and the probe's report.
func WriteJSON(w io.Writer, r *probe.Report) error {
	findings := r.Findings()
	if findings == nil {
		findings = []probe.Finding{}
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(struct {
		Schema   string          `json:"schema"`
		Verdict  string          `json:"verdict"`
		Severity probe.Severity  `json:"severity"`
		Findings []probe.Finding `json:"findings"`
		Report   *probe.Report   `json:"report"`
	}{"detent.doctor/1", Verdict(r), r.Worst(), findings, r})
}
