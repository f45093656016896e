package cgoclock

import (
	"errors"
	"testing"

	"github.com/detent-go/detent/clock"
)

// TestRaw: C reads the clock that package clock reads, or says why it does not.
func TestRaw(t *testing.T) {
	if err := Available(); err != nil {
		if !errors.Is(err, errors.ErrUnsupported) || Raw() != 0 || Raws(3) != 0 {
			t.Errorf("%v, and the clock shows %d", err, Raw())
		}
		t.Skip(err)
	}
	if clock.Raw.Source() == clock.PackageTime {
		t.Skip("package clock has no CLOCK_MONOTONIC_RAW in this build")
	}
	for range 1000 {
		before := clock.Raw.Nanos()
		one := Raw()
		many := Raws(10)
		if after := clock.Raw.Nanos(); one < before || many < one || after < many {
			t.Fatalf("read %d, %d, %d, %d", before, one, many, after)
		}
	}
	if Raws(0) != 0 {
		t.Error("no reading, and a time")
	}
}
