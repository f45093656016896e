//go:build !linux || detent_portable

package waker

import (
	"errors"
	"fmt"
)

// Watch does not exist on this system or in this build.
type Watch struct{}

// NewWatch fails with [errors.ErrUnsupported].
func NewWatch(func()) (*Watch, error) {
	return nil, fmt.Errorf("timerfd: %w", errors.ErrUnsupported)
}

// Close is never called.
func (*Watch) Close() {}

// Wait is never called.
func (*Watch) Wait() {}
