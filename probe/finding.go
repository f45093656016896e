package probe

import (
	"fmt"
	"slices"
)

// A Finding is one fault, or one fact that explains a clock's or a timer's behaviour.
type Finding struct {
	// ID is stable: "clocksource.no-vdso". docs/findings.md lists them all.
	ID         string     `json:"id"`
	Severity   Severity   `json:"severity"`
	Confidence Confidence `json:"confidence"`
	// Title is one line for people: what is the matter, with the figure.
	Title string `json:"title"`
	// Detail says why that matters; it may be empty.
	Detail string `json:"detail,omitempty"`
	// Because is the ID of a finding of the same report that is the cause of this
	// one; its remedy is this one's too. Empty: none is known.
	Because string `json:"because,omitempty"`
	// Evidence is what it was concluded from.
	Evidence []Evidence `json:"evidence"`
	// Remedy has exact steps, each a command or a setting with its consequence, in
	// order. Empty: there is nothing to do.
	Remedy []string `json:"remedy,omitempty"`
}

// Evidence is one thing that was read or measured.
type Evidence struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	// Source is the file that was read, or the measurement.
	Source string `json:"source"`
}

// Severity says how bad a finding is.
type Severity int8

const (
	// Info is a fact worth knowing, on a machine that may be perfectly healthy.
	Info Severity = iota
	// Notice is something that costs precision or time in some programs.
	Notice
	// Warning is something that makes clocks slow or timers late in most programs
	// that care.
	Warning
	// Critical is a fault: time is wrong, or costs many times what it should.
	Critical
)

var severities = []string{"info", "notice", "warning", "critical"}

func (s Severity) String() string { return name("Severity", severities, int(s)) }

// MarshalText writes "info", "notice", "warning" or "critical".
func (s Severity) MarshalText() ([]byte, error) { return marshal("severity", severities, int(s)) }

// UnmarshalText reads what MarshalText writes.
func (s *Severity) UnmarshalText(text []byte) error {
	i, err := unmarshal("severity", severities, text)
	*s = Severity(i)
	return err
}

// Confidence says how sure a finding is.
type Confidence int8

const (
	// Possible: the evidence fits, and fits something harmless as well.
	Possible Confidence = iota
	// Likely: known to be so on machines of this kind, not measured on this one.
	Likely
	// Certain: measured, or stated by the kernel.
	Certain
)

var confidences = []string{"possible", "likely", "certain"}

func (c Confidence) String() string { return name("Confidence", confidences, int(c)) }

// MarshalText writes "possible", "likely" or "certain".
func (c Confidence) MarshalText() ([]byte, error) { return marshal("confidence", confidences, int(c)) }

// UnmarshalText reads what MarshalText writes.
func (c *Confidence) UnmarshalText(text []byte) error {
	i, err := unmarshal("confidence", confidences, text)
	*c = Confidence(i)
	return err
}

func name(kind string, names []string, i int) string {
	if i < 0 || i >= len(names) {
		return fmt.Sprintf("%s(%d)", kind, i)
	}
	return names[i]
}

func marshal(kind string, names []string, i int) ([]byte, error) {
	if i < 0 || i >= len(names) {
		return nil, fmt.Errorf("probe: no %s %d", kind, i)
	}
	return []byte(names[i]), nil
}

func unmarshal(kind string, names []string, text []byte) (int, error) {
	i := slices.Index(names, string(text))
	if i < 0 {
		return 0, fmt.Errorf("probe: no %s %q", kind, text)
	}
	return i, nil
}
