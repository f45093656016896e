// Package doctor shows a report of package probe to people: at a terminal, and as
// a page for a browser or for paper.
//
// It adds nothing to what the probe found but order and words: the verdict first,
// then the findings, worst first, each with what it was concluded from and what to
// do about it, then what was measured, as tables and plots, and last what could
// not be seen.
package doctor
