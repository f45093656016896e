//go:build !linux || detent_portable

package waker

import (
	"errors"
	"testing"
)

func TestPreciseUnsupported(t *testing.T) {
	if p, err := NewPrecise(func() {}); p != nil || !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("NewPrecise = %v, %v; want nil and an ErrUnsupported", p, err)
	}
}
