// Package rt is detent's door to the Go runtime: the monotonic clock as the
// engine reads it, the pinning of a goroutine to its P, and references to
// channels that the collector does not see.
//
// [Now] is [time.Since] of one fixed instant: CLOCK_MONOTONIC on Linux, counted
// from the start of the process, at the cost of one vDSO call. The same reading
// tells whether the goroutine runs inside a testing/synctest bubble.
//
// [Pin] uses runtime.procPin by linkname. With the build tag detent_portable
// pinning does nothing and shards are chosen by a [sync.Pool], which the runtime
// keeps per P; the rest of detent behaves the same.
package rt
