package doctor

import (
	"io"

	"github.com/detent-go/detent/probe"
)

// WriteFindings writes findings as WriteText does, in their order, but those that
// another explains under that one.
func WriteFindings(w io.Writer, findings []probe.Finding, width int, color bool) error {
	t := &terminal{width: max(width, 40), color: color}
	t.causes(tree(findings), 0)
	_, err := io.WriteString(w, t.b.String())
	return err
}
