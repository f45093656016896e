// Package netpoll114 is the timer engine of Go 1.14: no timer goroutine at all. The
// scheduler looks after the timers, each P after a heap of its own, and an idle
// thread waits for the next one in the netpoller.
//
// The engine is a scheduler in small, of the same parts: P's that hold what may
// run, M's that are threads, and tasks in place of goroutines. Where the releases
// differ it follows the last ones of Go 1.14 (it was held against 1.14.6); what
// later ones changed is named below.
//
// # How it works
//
// Every P has a run queue and a 4-ary heap of timers under a lock (timersLock). A
// thread that has a P goes round in a loop (schedule). In each round it looks first
// whether a timer of its P is due (checkTimers), then takes a task from the run
// queue and runs it. If there is none it looks elsewhere (findrunnable): in the
// queue of all, then in the other P's, from which it steals half of their tasks;
// and if it has found none in three rounds, it runs in the fourth those of their timers
// that are due, but for the timers of a P that is in use, whose thread will do so.
//
// With nothing to do the thread gives up its P. One such thread at a time waits in
// epoll_wait, until the earliest deadline of all heaps, in whole milliseconds,
// rounded down but to no less than one; the others park in a futex. Whoever starts
// a timer that is due before that deadline writes a byte into a pipe, which the
// epoll instance watches (netpollBreak). So an expiry costs one system call and no
// hand-over of a P, where Go 1.13 paid for a futex, two hand-overs and a goroutine;
// and a thread that is busy anyway fires its timers for the cost of reading the
// clock.
//
// The monitor thread (sysmon) looks after timers as well. While all P's are idle it
// sleeps until the earliest deadline too; if a timer is overdue it wakes a thread for
// an idle P. It sleeps by the nanosecond where the netpoller rounds to milliseconds,
// so it is often the first, and an expiry in an idle program wakes three threads.
//
// # Stopping and changing a timer
//
// A timer may be stopped or reset by a goroutine that runs on another P than the
// one in whose heap it is. To take that P's lock is what Go 1.13 did. Here the
// timer has a status instead, which is changed by compare-and-swap, and the heap
// is left as it is (lazy deletion): the P to which it belongs does the rest, when
// it next comes across the timer. These are the states:
//
//	state           in a heap   who may touch its fields
//	NoStatus        no          whoever starts it
//	Waiting         yes         nobody: only the state may change
//	Running         yes         its P, for a moment: it fires
//	Modifying       either      the goroutine that put it there, for a moment
//	Deleted         yes         nobody; its P will remove it
//	Removing        yes         its P, for a moment
//	Removed         no          nobody
//	ModifiedEarlier yes         nobody; the new deadline is in next, its P will move it
//	ModifiedLater   yes         the same
//	Moving          yes         its P, for a moment: it files the timer anew
//
// and this is how they follow each other; "P" means whoever holds the lock of the
// heap, be it the P itself or one that steals from it:
//
//	          Start                 P: due
//	NoStatus -------> Waiting <---------------> Running ---> NoStatus
//	                    | ^          (periodic)
//	         Stop,Reset | | Reset of what is in no heap
//	                    v |
//	                 Modifying ---Stop---> Deleted --P--> Removing --P--> Removed
//	                    | ^ ^----Reset--------'                             |
//	              Reset | |  ^-------------------Reset----------------------'
//	                    v |
//	               ModifiedEarlier, ModifiedLater --P--> Moving --P--> Waiting
//
// Whoever meets a state that lasts for a moment only lets others run, and looks
// again. A deadline in the heap (when) is changed under the heap's lock alone, so
// the order of the heap holds whatever the users do; a timer that was reset has the
// new deadline beside it (next).
//
// What was not done at once has to be cleaned up some time:
//
//   - cleantimers, with each start: the head of the heap, if it is deleted or moved.
//   - adjusttimers, with each look at the timers while one was moved to earlier:
//     the whole heap, for the moved one may be anywhere in it. That is the costly
//     part: O(n) under the lock for a single Reset to earlier.
//   - clearDeletedTimers, once a quarter of a P's timers are deleted: the whole heap.
//
// So Reset of a watchdog costs a few atomic operations, and only the wake-ups for
// what was stopped or moved away are wasted. But a program that stops most of its
// timers keeps up to a third more of them in memory, and the stall of a clean-up
// grows with the heap.
//
// # What later releases changed
//
//   - Breaks: a program that starts a hundred timers, each due before the netpoller
//     wakes up, writes up to a hundred bytes, of which each wait takes sixteen. Since Go
//     1.15 one byte is written until a thread has come back from the netpoller.
//   - Stealing: since Go 1.15 the timers of P's in use are stolen as well, in the last
//     round, and those of the others one round earlier.
//   - The monitor: since Go 1.16 it starts no thread for a timer that is overdue. That
//     is where short sleeps became coarser: the netpoller alone wakes up for them.
//   - Starting: since Go 1.16 a start while nobody is in the netpoller wakes a thread.
//   - Adjusting: since Go 1.16 the whole heap is gone through only once the earliest of
//     the modified timers is due, and each thread looks at all heaps once more before
//     it waits.
//
// # What is different from the runtime's
//
// A goroutine that blocks gives up its thread. A task here is a function, and takes
// the thread along when it blocks. So every task is treated as Go treats a system
// call: sysmon, which sleeps in nanosleep for 20 us at first and for 10 ms at the
// most, takes the P away from a thread that is in one task for too long, and hands it to
// another. A thread that comes back finds another P, or parks. A run queue is first in,
// first out, without the place ahead of it (runnext) for what was made ready last.
//
// Goroutines that use the engine run on the real scheduler, not on the P's of this
// one. So a timer goes to a P that is chosen by the real P of its starter. The
// starter's own thread would look at that P's timers before it gives it up, and go to
// the netpoller if nobody is there: in its place a start wakes a thread, if nobody is
// there and the P is not in use. For the same reason it clears up the heap if need be,
// and each thread looks at all heaps before it waits, though Go 1.14 left the timers
// that came late to sysmon. Where the runtime keeps a goroutine from being preempted
// while it changes a timer's state, nothing does so here: who waits for it yields.
//
// There is one scheduler beneath this one. A thread of the engine's needs a real P in
// order to run, and pays for that with hand-overs that Go 1.14 did not have: its
// sleeps ([engine.Counters.Sleeps]) are the design's, the process's context switches
// are not.
//
// # Ground rules
//
// Locks: a heap's mu protects the heap, the links of its nodes to it, and the when
// of each node in it. sched.mu protects the lists of idle P's and M's and the queue
// of all. They are not held together, and no lock is held while a timer's function
// or a task runs. A run queue is put to by the thread that has the P alone, and
// taken from by all, without a lock.
//
// A node's next, period and seq belong to whoever has put it into Modifying, Running
// or Moving; so do when and timers while it is in no heap. The compare-and-swap that
// enters such a state sees all that was written before the one that left it: package
// sync/atomic promises that, and no other ordering is relied upon.
//
// A P belongs to the thread that made its status "running", until that thread
// makes it idle. While it is in a task it belongs to nobody: the thread takes it
// back, or sysmon takes it away, by compare-and-swap of a word that counts the tasks.
//
// # Why no wake-up is lost
//
// Who starts a timer first files it, then looks for somebody to tell. Who becomes
// idle first says so, then looks at all heaps again. All of these are sequentially
// consistent atomic operations, so at least one of the two sees the other:
//
//   - A thread is in epoll_wait, or about to be (lastpoll is 0): it is told by the
//     pipe unless the deadline it waits for (pollUntil) is early enough. It sets
//     lastpoll to 0, then pollUntil; one that is not set yet counts as too late.
//   - Else, a thread is looking for work (nmspinning is not 0): it will look at all
//     heaps again after it has stopped counting itself as spinning; or it finds a task,
//     and wakes the next one to spin when it stops.
//   - Else, if the heap's P is in use: its thread looks at it before it gives it up, and
//     at all heaps after that.
//   - Else, if a P is idle: a thread is woken for it, and will look.
//   - Else every P is in use or in a task, and its thread will look as well. If the
//     task is long, sysmon finds the timer overdue, or takes the P away.
package netpoll114
