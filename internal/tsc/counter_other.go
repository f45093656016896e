//go:build !linux || (!amd64 && !arm64) || detent_portable

package tsc

import (
	"errors"
	"fmt"
)

// Supported says that this build reads a counter.
const Supported = false

// Ordered returns 0.
func Ordered() uint64 { return 0 }

// Unordered returns 0.
func Unordered() uint64 { return 0 }

// Fence does nothing.
func Fence() {}

// Check returns an error that wraps [errors.ErrUnsupported].
func Check() error {
	return fmt.Errorf("no cycle counter in this build: %w", errors.ErrUnsupported)
}

// Stated knows nothing.
func Stated() (hz float64, source string) { return 0, "" }
