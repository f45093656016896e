//go:build !linux || detent_portable

package clock

import "time"

// Resolution returns the step of the clock as the kernel states it. 0 means that
// it is not known.
func (c Clock) Resolution() time.Duration { return 0 }
