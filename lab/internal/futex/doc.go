// Package futex is futex(2) as the Go runtime used it for its timers: a thread
// that sleeps on a word of memory until another thread wakes it, or until a time
// has passed.
//
// The wait tells the Go scheduler in advance that it will block, by the entry
// that the runtime keeps for its own such waits: the P of the waiting goroutine
// is handed to another thread at once, instead of being missed by the runtime's
// monitor some time later. That hand-off is what each sleep of the timer
// goroutines of Go 1.13 and before cost, so the lab's engines must pay it too. A
// build with the tag detent_portable makes a plain system call, and leaves the
// P to the monitor.
//
// It exists on Linux alone. Elsewhere [Available] returns an error, and nothing
// else may be called.
package futex
