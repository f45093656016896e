//go:build !linux || detent_portable

package waker

import (
	"errors"
	"fmt"
)

func bootReader() (func() (ns int64, bubbled bool), error) {
	return nil, fmt.Errorf("CLOCK_BOOTTIME on this system or in this build: %w", errors.ErrUnsupported)
}
