// Package heap1 is the timer engine of Go before 1.10: one heap for the whole
// program, one lock around it, and one goroutine that sleeps until the heap's
// first timer is due.
//
// # How it works
//
// Every goroutine that starts, stops or resets a timer takes the lock and sifts
// the heap: O(log n) under a lock that all Ps share. When the timer goroutine
// (timerproc) has fired what is due, it either parks, if there is no timer, or
// sleeps in the kernel: a futex wait with a timeout, on a thread. A timer that
// becomes the first of the heap ends that sleep early by a futex wake: also one that
// is due after the sleep, because what was before it has been stopped.
//
// # What it costs
//
// A goroutine that sleeps in the kernel takes its thread along, so the runtime
// hands the P to another thread first, which it may have to wake; and when the
// timer is due the goroutine has to find a P again. Two or three context switches
// for each sleep are not a matter of the heap at all, and they are what Go 1.14
// did away with. What Go 1.10 did away with is the lock, for which all Ps queue.
//
// Fired functions run one after another on the timer goroutine, as long as they
// only send on a channel or make a goroutine ready; AfterFunc's gets a goroutine.
//
// The heap is binary, as the articles have it. The runtime's was so in its first
// releases, and 4-ary, like that of package buckets64, in the later of these.
//
// # Ground rules
//
// mu protects everything but a node's function and argument, which never change.
// The timer goroutine gives mu up while it calls a function, so a function may
// start, stop and reset timers. sleeping and parked say which of its two waits the
// goroutine is in, or is about to enter once it has given up mu; whoever ends the
// wait clears the flag under mu, so that nobody else ends it again.
package heap1
