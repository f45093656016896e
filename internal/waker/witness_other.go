//go:build !linux || detent_portable

package waker

import (
	"errors"
	"fmt"
)

// Witness does not exist on this system or in this build.
type Witness struct{}

// NewWitness fails with [errors.ErrUnsupported].
func NewWitness(int) (*Witness, error) {
	return nil, fmt.Errorf("a thread that watches the timerfds: %w", errors.ErrUnsupported)
}

// Watch is never called.
func (*Witness) Watch(int, *Precise) error { return nil }

// Woken is never called.
func (*Witness) Woken(int, int64, int64) (int64, bool) { return 0, false }

// Close is never called.
func (*Witness) Close() {}

// Wait is never called.
func (*Witness) Wait() {}
