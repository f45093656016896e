// Package ksleep has the ways in which the Go runtime lets a thread sleep in the
// kernel: a futex with a timeout, as its timer goroutines did up to Go 1.13; an
// epoll_wait with a timeout, as its idle threads do since Go 1.14; nanosleep, as
// its monitor does.
//
// Each tells the Go scheduler in advance that it will block, by the entry that
// the runtime keeps for its own such calls: the P of the goroutine is handed to
// another thread at once, instead of being missed by the runtime's monitor some
// time later. That hand-off is a good part of what the sleeps of the timer
// goroutines cost, so the lab's engines must pay it too. A build with the tag
// detent_portable makes plain system calls, and leaves the P to the monitor.
//
// Futexes and epoll exist on Linux alone. Elsewhere [Available] returns an error,
// and nothing else may be called.
package ksleep
