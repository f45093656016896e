// Package buckets64 is the timer engine of Go 1.10 to 1.13: up to 64 heaps, of
// which each P uses one, and for each heap in use a lock and a timer goroutine.
//
// # How it works
//
// A timer belongs to the bucket of the P that started it: the P's number modulo
// 64. Two Ps of a program with at most 64 no longer wait for one lock. Within a
// bucket everything is as it was before, but that the heap is 4-ary: half as deep
// as a binary one, and the four children of a node lie beside each other, so that
// to sift costs fewer cache misses.
//
// The timer goroutine of a bucket (timerproc) fires what is due, then sleeps until
// the first of its heap is: a futex wait with a timeout. A timer that is due before
// the end of the sleep ends it by a futex wake; up to Go 1.11 any did that became the
// first of the heap.
//
// # What it costs
//
// The lock no longer matters, and the sleep matters more. Where one goroutine
// slept in the kernel there are now as many as Ps:
//
//   - Before the goroutine sleeps, its thread gives up the P, and hands it to
//     another thread, which has to be woken for that, if it is to be of use.
//   - When the timer is due, the thread wakes up without a P, finds an idle one or
//     queues its goroutine for one, and goes to sleep itself if there is none.
//   - If the goroutine then sends on a channel, the goroutine that was waiting has
//     yet to be scheduled.
//
// So each expiry costs some context switches, which a program with many timers of
// short durations pays many thousand times a second. Go 1.14 has the Ps look at
// the timers themselves (package netpoll114).
//
// A goroutine that runs on one P and stops or resets the timer of another takes
// the other's lock, which is why a pool of connections whose deadlines are pushed
// back from anywhere still contends. And the balance is left to chance: timers
// stay with the P that started them, though it may be the busiest.
//
// # Ground rules
//
// A bucket's mu protects the bucket and all nodes in it, but for their functions
// and arguments, which never change. A node's own mu protects which bucket it
// belongs to; it is taken before a bucket's. The timer goroutine touches the nodes
// of its bucket alone, and takes no node's mu. It gives up the bucket's while it calls a
// function. sleeping and parked work as in package heap1. No two buckets' locks are
// held at a time.
//
// Before Go 1.14 a Reset was a stop and a start with nothing to hold them together:
// two goroutines that reset the same timer at once could start it twice. The
// node's mu is there because the test suite does just that.
package buckets64
