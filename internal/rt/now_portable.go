//go:build detent_portable

package rt

import "time"

// Now returns the nanoseconds of monotonic time since the program started, and
// whether the calling goroutine is inside a testing/synctest bubble, where the
// reading means nothing. It is safe for concurrent use.
func Now() (ns int64, bubbled bool) { return int64(time.Since(started)), isBubbled() }
