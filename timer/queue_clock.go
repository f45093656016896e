package timer

import (
	"time"

	"github.com/detent-go/detent/internal/shard"
	"github.com/detent-go/detent/internal/slab"
)

// queueClock is a queue shard's account of the time. Guarded by the shard's mu.
//
// # Guessing the time
//
// Reading the clock takes as long as a lock and an unlock, and would be the
// greatest part of adding a timer. A cached reading will not do instead: it lies
// in the past, and a deadline made from it would be early. But a timer that has
// slack may be taken to start a little later than now. So where timers come fast
// the clock is read for queueEpoch of them at a time: those in between are taken
// to start at base+queueLag, where base is the last reading and queueLag more
// than queueEpoch timers have just been seen to take. The next reading tells
// whether they were right: if it comes later than base+queueLag, all that have
// been guessed since base are put off by the difference, for none of them began
// after that reading.
//
// So no timer is early, whenever that next reading comes; but each is late by as
// long as it takes to come. That it comes soon must not depend on timers still
// being added. Therefore guessing is allowed (credit) only while the shard's
// timer is set to fire within a tick of coarseGrid; that reads the clock, and
// takes the credit away. A shard that is given few timers never gets credit, and
// is not woken for it.
//
// All of this comes out of the slack: the lag, the time until the shard is woken,
// and what the grid rounds up to, are together no more than the slack of a timer
// that lasts guessMin.
//
// # Noting
//
// A timer whose time is guessed is not filed at once, but noted. What is noted is
// filed when the shard is woken, or when there is too much of it: a timer that is
// stopped before has cost nothing but its node. None can be due before that, for
// guessMin is longer.
//
// A note is a node's index, and no more than a hint: the node may have been
// freed since, used for another timer, filed, or noted again. If it waits to be
// filed (whereNoted), then its Off is the number of its note. If it is filed, then
// it is one that stayed where it was when it was reset to a guess; it is noted for
// the sake of its Kind alone, which tells whether its deadline still is a guess
// made since base.
//
// Every decision that a timer is due is made by a reading of this clock.
type queueClock struct {
	base     int64 // the last reading
	credit   int   // how many timers may still be guessed; there is room to note them
	guessMin int64 // constant; the least duration of a timer that may be

	// window is how many readings for timers of guessMin or more are to come until
	// it is judged how fast they come; windowStart is when it was last.
	window      int
	windowStart int64

	// notes is a ring: notes head to tail are there, and those from since on were
	// made after base was read.
	head, since, tail uint32
	notes             *[queueNotes]uint32 // constant; nil where nothing is guessed
}

const (
	// queueEpoch timers in no more than queueLag nanoseconds, one every 2
	// microseconds, are fast enough for guessing to be worth the wake-ups.
	queueEpoch = 64
	queueLag   = int64(1) << 17

	// queueNotes is the room for notes: for timers that are stopped soon, and
	// little enough to be filed in some tens of microseconds.
	queueNotes = 2048

	// guessMinAuto is the shortest timer with automatic slack that is guessed. Its
	// slack of a thousandth (1/1024) is 4.88 ms, and has room for queueLag, for
	// the 4.19 ms that coarseGrid may take to wake the shard, and for a grid of an
	// eighth of the slack, 0.52 ms.
	guessMinAuto   = int64(5 * time.Second)
	guessAutoShift = 13

	// guessGrid is the least grid of a fixed slack for guessing, 16.8 ms: half of
	// it is then for the grid, and half for the above. guessMinFixed is the
	// shortest timer that is guessed with it, and not due before the wake-up.
	guessGrid     = coarseGrid + 2
	guessMinFixed = int64(4) << coarseShift
)

// guessesLocked reports whether the time is guessed for a timer of duration d,
// which uses credit.
func (c *queueCore) guessesLocked(d int64) bool {
	if c.clock.credit == 0 || d < c.clock.guessMin {
		return false
	}
	c.clock.credit--
	return true
}

// guessLocked returns the deadline of a timer of duration d by guess.
func (c *queueCore) guessLocked(d time.Duration) int64 {
	return min(deadline(d, c.clock.base+queueLag), queueNever-1)
}

// noteLocked notes node i.
func (c *queueCore) noteLocked(i uint32, n *slab.Node) {
	k := &c.clock
	if n.Where == whereNoted {
		n.Off = k.tail
	}
	k.notes[k.tail%queueNotes] = i
	k.tail++
}

// timeLocked returns the current time for a timer of duration d that is not
// guessed. It returns false if the clock cannot be read here: see queueBubble.
func (c *queueCore) timeLocked(d int64) (now int64, ok bool) {
	now, ok = c.readLocked()
	if d >= c.clock.guessMin {
		c.paceLocked(now)
	}
	return now, ok
}

// readLocked reads the clock. It returns false if it cannot be read here.
func (c *queueCore) readLocked() (now int64, ok bool) {
	if c.bubble != nil {
		now, ok = c.bubble.now()
	} else {
		var inBubble bool
		now, inBubble = c.group.Now()
		ok = !inBubble
	}
	if !ok {
		return 0, false
	}
	k := &c.clock
	over := now - (k.base + queueLag)
	k.base = max(k.base, now)
	if k.since != k.tail {
		if over > 0 {
			c.putOffLocked(over)
		}
		k.since = k.tail
		if k.tail-k.head > queueNotes-queueEpoch {
			c.fileNotesLocked(queueEpoch)
		}
	}
	return now, true
}

// putOffLocked puts off what has been guessed since the last reading.
func (c *queueCore) putOffLocked(by int64) {
	k := &c.clock
	for at := k.since; at != k.tail; at++ {
		if _, n := c.notedLocked(at); n != nil && n.Kind == kindGuessed {
			n.Deadline = min(n.Deadline, queueNever-1-by) + by
			n.Kind = kindRead // It may have been noted more than once.
		}
	}
}

// notedLocked returns the node of a note; nil if the note is void.
func (c *queueCore) notedLocked(at uint32) (i uint32, n *slab.Node) {
	i = c.clock.notes[at%queueNotes]
	if c.gens[i/slab.ChunkSize] == nil {
		return i, nil // All nodes of the chunk are free.
	}
	if n = c.nodes.Node(i); n.Where == whereNoted && n.Off != at {
		return i, nil // There is a later note.
	}
	return i, n
}

// fileNotesLocked files what the first notes are of, as many as max.
func (c *queueCore) fileNotesLocked(max uint32) {
	k := &c.clock
	for end := k.head + min(max, k.tail-k.head); k.head != end; k.head++ {
		i, n := c.notedLocked(k.head)
		if n == nil || n.Where != whereNoted {
			continue
		}
		n.Grid = c.grid
		if c.auto {
			n.Grid = shard.Grid((n.Deadline - k.base) >> guessAutoShift)
		}
		c.fileLocked(i, n)
	}
}

// paceLocked counts a reading for a timer that might have been guessed, and
// decides whether the next ones are.
func (c *queueCore) paceLocked(now int64) {
	k := &c.clock
	k.window--
	if k.window > 0 || k.guessMin == queueNever {
		return
	}
	fast := now-k.windowStart <= queueLag
	k.windowStart = now
	k.window = queueEpoch
	if !fast {
		return
	}
	k.credit = queueEpoch
	k.window = 1 // The next reading is made when the credit is used up, and judges that.
	if at := (now>>coarseShift + 1) << coarseShift; at < c.armed {
		c.armed, c.armGrid, c.wantArm = at, coarseGrid, true
	}
}
