// Package wheel is the timing wheel that the articles set against the timers of
// Go: coarse, with a fixed tick, one lock, and a goroutine that turns it.
//
// # Structure
//
// Five rings of slots, each a list of timers. A slot of the first ring is a tick
// wide; a slot of the next is as wide as the whole ring before it.
//
//	ring   slots   slot, ticks   reach, ticks   reach at a tick of 1 ms
//	0      256     1             2^8            0.26 s
//	1      64      2^8           2^14           16 s
//	2      64      2^14          2^20           17 min
//	3      64      2^20          2^26           19 h
//	4      64      2^26          2^32           50 days
//
// A timer goes into the ring that its distance fits, by two shifts and a mask, at
// the end of a list: start and stop cost the same however many timers are
// pending. With each tick the wheel fires the next slot of ring 0. When ring 0
// has gone round once, the next slot of ring 1 is emptied and its timers are filed
// anew, nearer by now; and so on outwards (a cascade). A timer beyond the last
// ring waits in its farthest slot, and is filed anew when that comes up.
//
// This is the wheel of Linux before 4.8, and of most libraries.
//
// # What was traded away
//
//   - Precision: a timer fires at the first tick at or after its deadline, so up to
//     a tick late, and never early: the tick is found from the clock, and not
//     counted. Wheels that count their ticks, or round to the nearest, fire early.
//   - Rest: it turns while there is nothing to do. At a tick of a millisecond an
//     idle program is woken a thousand times a second.
//   - The worst case: the tick that cascades touches every timer of a slot, under
//     the lock. With ten million timers pending that is a stall of milliseconds.
//   - The lock: one for all. The work under it is short, and that carries further
//     than one would think; but not to dozens of CPUs.
//   - The collector: each timer is an object on two lists, all of which have to be
//     followed in each cycle.
//
// # Ground rules
//
// mu protects the rings and all nodes but for their functions and arguments, which
// never change. It is given up while a function is called. A slot that is fired is
// taken over as a list of its own, in which a node can still be stopped.
package wheel
