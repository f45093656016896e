package doctor

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/detent-go/detent/probe"
)

// outline writes a tree as "a(b c(d)) e".
func outline(list []cause) string {
	var words []string
	for _, c := range list {
		word := c.ID
		if len(c.Explains) > 0 {
			word += "(" + outline(c.Explains) + ")"
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

func TestTree(t *testing.T) {
	// "b<a" is b because of a.
	for _, c := range []struct{ findings, want string }{
		{"", ""},
		{"a b c", "a b c"},
		{"a b<a c", "a(b) c"},
		{"x b<a c a", "x a(b) c"},
		{"b<a c<b a d<b", "a(b(c d))"},
		{"a<nowhere b", "a b"},
		{"a<a b", "a b"},
		{"a<b b<a c<b d", "a b c d"},
		{"a b<a b<a", "a(b b)"},
		{"a a b<a", "a(b) a"},
	} {
		var findings []probe.Finding
		for _, word := range strings.Fields(c.findings) {
			id, because, _ := strings.Cut(word, "<")
			findings = append(findings, probe.Finding{ID: id, Because: because})
		}
		if got := outline(tree(findings)); got != c.want {
			t.Errorf("%q: %q, want %q", c.findings, got, c.want)
		}
	}
}

// explained is a machine on hpet: the kernel's choice explains what is measured.
func explained() *probe.Report {
	r := whole()
	r.Results[1].Findings = []probe.Finding{
		{ID: "clocksource.tsc-unstable", Severity: probe.Warning, Confidence: probe.Certain, Title: "the kernel has given up the TSC"},
		{ID: "clocksource.no-vdso", Severity: probe.Critical, Confidence: probe.Certain, Title: "the kernel keeps time by hpet", Because: "clocksource.tsc-unstable"},
	}
	r.Results[2].Findings = []probe.Finding{
		{ID: "clocks.vdso-falls-back", Severity: probe.Critical, Confidence: probe.Certain, Title: "every reading is a system call", Because: "clocksource.no-vdso", Remedy: []string{"see why"}},
		{ID: "a.fact", Severity: probe.Info, Confidence: probe.Certain, Title: "a fact"},
	}
	return r
}

// The cause comes first, in all forms, and what it explains says so.
func TestCauseFirst(t *testing.T) {
	r := explained()
	const want = "2 critical faults, 1 warning. First of all: the kernel has given up the TSC. Because of that: every reading is a system call."
	if got := Verdict(r); got != want {
		t.Errorf("%q\nwant %q", got, want)
	}
	var text, html bytes.Buffer
	if err := WriteText(&text, r, 100, false); err != nil {
		t.Fatal(err)
	}
	if err := WriteHTML(&html, r); err != nil {
		t.Fatal(err)
	}
	inOrder(t, text.String(),
		"\nWARNING: the kernel has given up",
		"\n    CRITICAL because of clocksource.tsc-unstable: the kernel keeps time by hpet",
		"\n        CRITICAL because of clocksource.no-vdso: every reading",
		"\n            => see why",
		"\nINFO: a fact")
	inOrder(t, html.String(),
		`id="clocksource.tsc-unstable"`,
		`because of <a href="#clocksource.tsc-unstable">`, `id="clocks.vdso-falls-back"`, `because of <a href="#clocksource.no-vdso">`, "</section></section></section>", `id="a.fact"`)
	// However narrow the terminal: something is left for the text.
	text.Reset()
	if err := WriteText(&text, r, 40, false); err != nil {
		t.Fatal(err)
	}
	inOrder(t, text.String(), "WARNING: ", "CRITICAL because of", "CRITICAL because of", "INFO: ")
}

// inOrder: all the parts are in s, one after the other; blank space does not count
// in HTML.
func inOrder(t *testing.T, s string, parts ...string) {
	t.Helper()
	if strings.Contains(s, "<html") {
		s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' }), "")
	}
	rest := s
	for _, part := range parts {
		_, after, ok := strings.Cut(rest, part)
		if !ok {
			t.Errorf("%q is not where it should be in:\n%s", part, s[:min(len(s), 3000)])
			return
		}
		rest = after
	}
}

// whole is a report of all checks, with nothing in it.
func whole() *probe.Report {
	r := healthy()
	for _, c := range probe.Checks() {
		r.Results = append(r.Results, probe.Result{Check: c.Name})
	}
	return r
}

// A verdict says no more than what was looked at.
func TestVerdictOfLess(t *testing.T) {
	unseen := whole()
	unseen.Results[3].Err = probe.ErrNoTime
	some := whole()
	some.Results = slices.Clone(some.Results[:3])
	for _, c := range []struct {
		r    *probe.Report
		want string
	}{
		{whole(), "This machine keeps time as it should."},
		{unseen, "This machine keeps time as it should, as far as can be seen."},
		{some, "Nothing is wrong by the 3 of 20 checks that were made."},
	} {
		if got := Verdict(c.r); got != c.want {
			t.Errorf("%q\nwant %q", got, c.want)
		}
	}
}

// Tables fit a terminal of the usual width, and say what they have left out for it.
func TestTablesFit(t *testing.T) {
	var b bytes.Buffer
	if err := WriteText(&b, sick(), 80, false); err != nil {
		t.Fatal(err)
	}
	tables := 0
	for line := range strings.Lines(b.String()) {
		if strings.HasPrefix(line, "──") {
			tables++
			if n := len([]rune(strings.TrimRight(line, "\n"))); n > 80 {
				t.Errorf("a table %d wide", n)
			}
		}
	}
	if tables < 5 || !strings.Contains(b.String(), "Left out for want of width: step seen, typical.") {
		t.Errorf("%d tables in:\n%s", tables, &b)
	}
	var wide bytes.Buffer
	if err := WriteText(&wide, sick(), 120, false); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(wide.String(), "Left out") || !strings.Contains(wide.String(), "step seen") {
		t.Error("columns are left out although there is room")
	}
}
