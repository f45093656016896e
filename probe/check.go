package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// A Check looks at one thing.
type Check struct {
	Name  string // for Options.Checks: "clocksource"
	About string // what it looks at, in one line
	// Budget is how long the check takes at most on an idle machine, for progress; nil: next to nothing.
	Budget func(e *Env) time.Duration
	// Run sets what it found out in the Result; Check and Took are the caller's.
	// It returns early, with ctx's error, when ctx ends.
	Run func(ctx context.Context, e *Env) Result
}

// A Result is what one check found out.
type Result struct {
	Check string
	// Err is nil if everything was measured. It matches errors.ErrUnsupported if
	// this machine conclusively does not have what the check looks at. Any other
	// error says what the check could not see; what it did see is in Findings and
	// Data all the same.
	Err      error
	Findings []Finding
	// Data is a struct of this package, which the check's documentation names; nil
	// if nothing was measured.
	Data any
	Took time.Duration
}

// Status sums up Err in a word.
func (r Result) Status() Status {
	switch {
	case r.Err == nil:
		return Measured
	case errors.Is(r.Err, errors.ErrUnsupported):
		return Unsupported
	case r.Data != nil:
		return Partial
	}
	return Unknown
}

// A Status says how much a check could see.
type Status string

const (
	Measured    Status = "measured"
	Unsupported Status = "unsupported" // a conclusive no
	Partial     Status = "partial"     // something could not be seen
	Unknown     Status = "unknown"     // could not tell
)

// MarshalJSON writes Err as its text beside the status.
func (r Result) MarshalJSON() ([]byte, error) {
	form := struct {
		Check    string    `json:"check"`
		Status   Status    `json:"status"`
		Error    string    `json:"error,omitempty"`
		Findings []Finding `json:"findings"`
		Data     any       `json:"data,omitempty"`
		Took     int64     `json:"took_ns"`
	}{Check: r.Check, Status: r.Status(), Findings: r.Findings, Data: r.Data, Took: int64(r.Took)}
	if r.Err != nil {
		form.Error = r.Err.Error()
	}
	if form.Findings == nil {
		form.Findings = []Finding{}
	}
	return json.Marshal(form)
}

// unseen is an error about something that could not be read, with a hint who could.
func unseen(what string, err error, hint string) error {
	if hint == "" {
		return fmt.Errorf("%s: %w", what, err)
	}
	return fmt.Errorf("%s: %w (%s)", what, err, hint)
}
