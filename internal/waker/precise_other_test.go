//go:build !linux || detent_portable

package waker

import (
	"errors"
	"testing"
)

func TestPreciseUnsupported(t *testing.T) {
	if p, err := NewPrecise(Monotonic, func() {}); p != nil || !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("NewPrecise = %v, %v; want nil and an ErrUnsupported", p, err)
	}
}

func TestWatchUnsupported(t *testing.T) {
	if w, err := NewWatch(func() {}); w != nil || !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("NewWatch = %v, %v; want nil and an ErrUnsupported", w, err)
	}
	if _, err := Boottime.Reader(); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("the reader of CLOCK_BOOTTIME: %v, want an ErrUnsupported", err)
	}
}
