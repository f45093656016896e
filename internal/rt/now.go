package rt

import "time"

// started is when the program started, outside every bubble: it has a monotonic
// reading.
var started = time.Now()

// isBubbled tells whether the goroutine is in a bubble, the slow way. Only a time
// without a monotonic reading equals itself rounded, and only in a bubble does
// time.Now return such a time.
func isBubbled() bool {
	t := time.Now()
	return t == t.Round(0)
}

// At returns what Now gave, or would have given, at time t, which has a
// monotonic reading.
func At(t time.Time) int64 { return int64(t.Sub(started)) }
