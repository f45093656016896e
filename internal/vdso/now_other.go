//go:build !linux || (!amd64 && !arm64) || detent_portable

package vdso

import (
	"errors"
	"fmt"
)

// Now always reports false.
func Now(id int32) (ns int64, ok bool) { return 0, false }

var errNone = fmt.Errorf("vdso: not called in this build: %w", errors.ErrUnsupported)

// Find returns an error that wraps [errors.ErrUnsupported].
func Find() error { return errNone }

// Disable does nothing, there is nothing to disable.
func Disable() (restore func()) { return func() {} }

// ErrNoImage says that the kernel has not mapped a vDSO.
var ErrNoImage = errors.New("vdso: the process has no vDSO")

// Image returns an error that wraps [errors.ErrUnsupported].
func Image() ([]byte, error) { return nil, errNone }
