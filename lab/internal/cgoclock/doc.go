// Package cgoclock reads CLOCK_MONOTONIC_RAW as a program with cgo does: by a call
// of libc's clock_gettime. It is there to be compared with package clock, which reads
// the same clock without C.
//
// It needs a build with cgo, that is a C compiler, on Linux. Everything else that the
// lab does goes without; [Available] says why this does not.
package cgoclock

// Available reports whether the clock can be read this way, by a nil error; the error
// says why not, and matches errors.ErrUnsupported. Without it the others return 0.
func Available() error { return available() }

// Raw returns CLOCK_MONOTONIC_RAW in nanoseconds, by one call into C.
func Raw() int64 { return raw() }

// Raws reads the clock n times within one call into C, and returns the last reading.
func Raws(n int) int64 { return raws(n) }
