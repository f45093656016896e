//go:build !linux

package bench

import (
	"errors"
	"fmt"
	"runtime"
	"time"
)

// threadSleeps measures threads with a timer slack of their own, which only
// Linux has.
func threadSleeps(time.Duration, []int64) error {
	return fmt.Errorf("timer slack on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}
