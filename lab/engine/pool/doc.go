// Package pool is what a program can build for itself above the runtime, where it
// does not trust package time with its latency: a pool of timers for each P.
//
// # How it works
//
// Each pool has a lock, a 4-ary heap, and a thread of its own. A goroutine locked
// to the thread sleeps in futex(2) until the first timer of the heap is due, and
// fires it. The thread asks the kernel for a timer slack of 1 ns in place of the
// usual 50 us, and can be told to spend the last stretch before each deadline
// spinning ([Options.Spin]), for what the kernel takes to wake it.
//
// A timer goes into the pool of the P that starts it, so that Ps do not wait for
// one lock. With [Options.Pools] of 1 all use one: that is the global lock which
// the article compares with.
//
// # What it costs
//
// A thread for each P that does nothing else, and a CPU for each while it spins. A
// locked goroutine cannot run anywhere but on its thread: to hand something to
// another goroutine takes two switches of threads, where the runtime's own timers
// take none. A thread that wakes in the kernel needs a P to go on, so while all Ps
// are busy it waits for the Go scheduler like any goroutine. And there is no
// balance: a timer's pool is that of its starter.
//
// # Ground rules
//
// A pool's mu protects the pool and its nodes but for their functions and
// arguments, which never change. A node's mu protects which pool it belongs to,
// and is taken before a pool's. The pool's thread takes no node's mu, and gives up
// the pool's while it calls a function. sleeping says that the thread sleeps, or
// is about to once it has given up mu; whoever wakes it clears sleeping, under mu.
package pool
