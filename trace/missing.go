package trace

import (
	"errors"
	"strings"
)

// A MissingError says what this machine or this user does not have that tracing
// needs. It matches errors.ErrUnsupported if that cannot be changed without
// another kernel, else fs.ErrPermission.
type MissingError struct {
	// Missing names each thing, with the way to get it.
	Missing []string
	// Err is the first refusal of the kernel; it may be nil.
	Err error

	sentinel error
}

// hint is what package ebpf adds to every refusal. It misleads: kernels that tracing
// works on do not count a map as locked memory.
const hint = " (MEMLOCK may be too low, consider rlimit.RemoveMemlock)"

func (e *MissingError) Error() string {
	s := "trace: missing: " + strings.Join(e.Missing, "; ")
	if e.Err != nil {
		s += " (" + strings.ReplaceAll(e.Err.Error(), hint, "") + ")"
	}
	return s
}

// Unwrap returns what the error matches.
func (e *MissingError) Unwrap() []error {
	if e.Err == nil {
		return []error{e.sentinel}
	}
	return []error{e.sentinel, e.Err}
}

// errClosed is what a tracer returns after Close.
var errClosed = errors.New("trace: the tracer is closed")
