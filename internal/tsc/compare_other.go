//go:build !linux || (!amd64 && !arm64) || detent_portable

package tsc

import (
	"errors"
	"time"
)

// ErrBusy says that two threads did not get to run at the same time.
var ErrBusy = errors.New("the CPUs were busy")

// CompareCPUs compares nothing.
func CompareCPUs(known []Offset, budget time.Duration) (offsets []Offset, others int, coarse bool, err error) {
	return known, 0, false, errors.ErrUnsupported
}

// Converse exchanges nothing.
func Converse(from, to, n int) ([]Exchange, error) { return nil, errors.ErrUnsupported }

// CPUs returns an error.
func CPUs() ([]int, error) { return nil, errors.ErrUnsupported }

// OnCPU runs nothing.
func OnCPU(cpu int, f func() error) error { return errors.ErrUnsupported }

// Move returns an error.
func Move(cpu int) error { return errors.ErrUnsupported }
