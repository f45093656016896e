//go:build !linux || detent_portable

package waker

import (
	"errors"
	"fmt"
)

// Precise does not exist on this system or in this build.
type Precise struct{}

// NewPrecise fails with [errors.ErrUnsupported].
func NewPrecise(Clock, func()) (*Precise, error) {
	return nil, fmt.Errorf("timerfd: %w", errors.ErrUnsupported)
}

// Arm is never called.
func (*Precise) Arm(int64) {}

// Replace is never called.
func (*Precise) Replace() {}

// Close is never called.
func (*Precise) Close() {}

// Wait is never called.
func (*Precise) Wait() {}
