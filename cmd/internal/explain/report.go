package explain

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/detent-go/detent/cmd/internal/doctor"
	"github.com/detent-go/detent/cmd/internal/watch"
	"github.com/detent-go/detent/probe"
	"github.com/detent-go/detent/trace"
)

// A Report is the explanation of one process.
type Report struct {
	PID     int             `json:"pid"`
	Comm    string          `json:"comm"`
	Exe     string          `json:"exe,omitempty"`
	Watched time.Duration   `json:"watched_ns"`
	Verdict string          `json:"verdict"`
	Worst   probe.Severity  `json:"severity"`
	Symptom []Symptom       `json:"symptoms"`
	Found   []probe.Finding `json:"findings"` // the root cause first
	Cost    Cost            `json:"cost"`
	// Process is what package trace saw.
	Process *trace.Process `json:"process"`
	// Unseen is what could not be looked at, and why.
	Unseen []string `json:"unseen,omitempty"`
	// Overhead is the share of one CPU that the watching took.
	Overhead float64 `json:"overhead"`
}

// A Symptom is what the process, or whoever waits for it, notices.
type Symptom struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// symptoms are of the clock first, then of timers, then of goroutines.
func symptoms(f *Facts) []Symptom {
	var list []Symptom
	add := func(name, format string, args ...any) {
		list = append(list, Symptom{name, fmt.Sprintf(format, args...)})
	}
	p := &f.Process
	var rate uint64
	var took trace.Histogram
	spared := false // whether any could be read by a vDSO
	for _, c := range p.ClockCalls {
		rate += c.Count
		spared = spared || c.Reason != trace.ReasonClock
		if c.Took != nil {
			took.Add(c.Took)
		}
	}
	switch {
	case rate == 0:
		value := "by the vDSO, without a system call"
		if f.Cost.Now > 0 {
			value += fmt.Sprintf("; time.Now takes %s on this machine", watch.Duration(f.Cost.Now))
		}
		add("its clock readings", "%s", value)
	default:
		value := watch.Rate(rate, f.Elapsed) + " a second by system call"
		if took.Count > 0 {
			value += fmt.Sprintf(": in the kernel alone median %s, 99%% %s", watch.AtMost(took.Quantile(0.5)), watch.AtMost(took.Quantile(0.99)))
		}
		if spared && f.Cost.Call > 0 && f.Cost.VDSO > 0 {
			value += fmt.Sprintf("; with the way there and back %s, by the vDSO it would be %s", watch.Duration(f.Cost.Call), watch.Duration(f.Cost.VDSO))
		}
		add("its clock readings", "%s", value)
	}
	if q := p.Profile; q != nil && q.Samples() > 0 {
		add("of its CPU time, reading clocks", "%.0f%%", 100*q.ClockShare())
	}
	if l := f.kernelLateness(); l.Total.Count > 0 {
		add("its timers wake threads late by", "median %s, 99%% %s, longest %s",
			watch.AtMost(l.Total.Quantile(0.5)), watch.AtMost(l.Total.Quantile(0.99)), watch.Duration(l.Total.Max))
	}
	if h := p.GoTimers; h != nil && h.Count > 0 {
		add("Go's timers are late by", "median %s, 99%% %s, longest %s", watch.AtMost(h.Quantile(0.5)), watch.AtMost(h.Quantile(0.99)), watch.Duration(h.Max))
	}
	if g := p.Go; g != nil && g.Latency.Count > 0 {
		add("goroutines wait for a P", "median %s, 99%% %s", watch.AtMost(g.Latency.Quantile(0.5)), watch.AtMost(g.Latency.Quantile(0.99)))
	}
	d := f.demand()
	add("its CPU time", "ran on %.2f CPUs, stood still by quota %.2f, waited for a CPU %.2f", d.running, d.throttled, d.waiting)
	return list
}

// verdict is the report in a sentence.
func (r *Report) verdict() string {
	if r.Worst < probe.Warning {
		if len(r.Found) > 0 && r.Worst > probe.Info {
			return "Nothing serious is the matter with its clocks and timers: " + r.Found[0].Title + "."
		}
		return "Nothing is the matter with its clocks and timers."
	}
	return upper(r.Found[0].Title) + "."
}

// WriteText writes the report: the verdict, the symptoms, then each finding with
// its evidence and remedy, the root cause first.
func WriteText(w io.Writer, r *Report, width int, color bool) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s[%d] %s, watched for %s\n", r.Comm, r.PID, r.Exe, watch.Duration(r.Watched))
	fmt.Fprintf(&b, "%s\n\nSymptoms\n", r.Verdict)
	for _, s := range r.Symptom {
		fmt.Fprintf(&b, "    %s: %s\n", s.Name, s.Value)
	}
	b.WriteString("\n")
	if _, err := io.WriteString(w, b.String()); err != nil {
		return err
	}
	if err := doctor.WriteFindings(w, r.Found, width, color); err != nil {
		return err
	}
	b.Reset()
	for _, u := range r.Unseen {
		fmt.Fprintf(&b, "not seen: %s\n", u)
	}
	fmt.Fprintf(&b, "The watching took %s of a CPU.\n", percent(r.Overhead))
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteJSON writes the report for machines.
func WriteJSON(w io.Writer, r *Report) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(struct {
		Schema string `json:"schema"`
		*Report
	}{"detent.explain/1", r})
}
