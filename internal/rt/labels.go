package rt

import (
	"context"
	"runtime/pprof"
)

// Unlabel takes the profiler labels off the calling goroutine. A goroutine starts
// with those of its creator, and what detent starts goes on for other users.
func Unlabel() { pprof.SetGoroutineLabels(context.Background()) }
