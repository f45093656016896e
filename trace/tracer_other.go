//go:build !linux || (!amd64 && !arm64)

package trace

import (
	"context"
	"errors"
	"fmt"
	"runtime"
)

// A Tracer watches until it is closed.
type Tracer struct{}

// Start returns an error: the programs are for Linux on amd64 and arm64.
func Start(context.Context, *Options) (*Tracer, error) {
	return nil, fmt.Errorf("trace: on %s/%s: %w", runtime.GOOS, runtime.GOARCH, errors.ErrUnsupported)
}

// Events are what happens, in order.
func (*Tracer) Events() <-chan Event { return nil }

// Snapshot returns what has been seen by now.
func (*Tracer) Snapshot() (*Snapshot, error) { return nil, errClosed }

// Close ends the watching.
func (*Tracer) Close() error { return nil }
