// Package wheel is a hierarchical timing wheel over the nodes of a slab: it
// files timers by tick, and hands out those whose tick has come.
//
// # Structure
//
// Time is counted in ticks. There are [Levels] levels of 64 slots; a slot of
// level l spans 64^l ticks. With a tick of 2^16 ns, as package shard uses it:
//
//	level   a slot spans   the level reaches
//	0       65.5 us        4.19 ms
//	1       4.19 ms        268 ms
//	2       268 ms         17.2 s
//	3       17.2 s         18.3 min
//	4       18.3 min       19.5 h
//	5       19.5 h         52 days
//	6       52 days        9.1 years
//	7       9.1 years      585 years, more than an int64 of nanoseconds
//
// The wheel stands at tick cur. A timer's level is the highest base-64 digit in
// which its tick differs from cur, and its slot is that digit. So a slot of a
// level above 0 lies wholly within one slot of the next level, and is entered
// when cur gets to it: its timers are then filed again, on lower levels. No
// timer is fired from a level above 0, so none is off by the width of a slot:
// what a timer costs for being far away is to be moved a few times, once per
// level at most, and not at all if it is stopped before.
//
// # What was traded away
//
// Linux's wheel never moves a timer; it fires those of upper levels up to an
// eighth of their distance late. Here the caller decides how much later than its
// deadline a timer may fire, by rounding its tick up before filing it, and
// timers that share a tick share a wake-up.
//
// The wheel does not tick. A bitmap a level finds the next slot that is in use,
// and each slot knows the least tick filed in it, so an idle wheel asks to be
// woken when its first timer is due, not when a slot begins. That least tick is
// not raised when its timer is stopped: such a wake-up finds less to do than
// expected, once.
//
// Entering a slot with very many timers takes long. It is done in portions, and
// begun ahead of the slot's first tick by the time that it is expected to take.
//
// # Ground rules
//
// The wheel has no lock, clock or goroutine: its owner, who holds the shard lock
// of package slab, passes the current tick. A node's Tick is written by the
// caller before [Wheel.Insert] and not by the wheel.
package wheel

import (
	"math/bits"

	"github.com/detent-go/detent/internal/slab"
)

const (
	digitBits = 6
	slots     = 1 << digitBits
	slotMask  = slots - 1

	// Levels is the number of levels: with a tick of 2^15 ns or more, all
	// ticks of an int64 of nanoseconds are within reach.
	Levels = 8

	// MaxTick is the last tick that the wheel can hold.
	MaxTick = 1<<(digitBits*Levels) - 1

	// FirstWhere is what Node.Where holds in slot 0 of level 0; further slots
	// and levels count up from there.
	FirstWhere = 2

	// portion is the number of timers that one step of entering a slot moves,
	// at most.
	portion = blockLen

	// lookahead is how many due timers are loaded at once.
	lookahead = 16

	// movesPerTick is how many timers the wheel expects to move in the time of
	// one tick, when it works out how early to begin with a slot.
	movesPerTick = 512
)

// slot is the timers of one digit.
type slot struct {
	min int64 // not after the earliest tick in the slot
	bag
}

// Wheel holds timers filed by tick. Use [New] to make one.
type Wheel struct {
	s *slab.Slab

	// cur is the tick at which the wheel stands: timers of this tick or an
	// earlier one are due, and filed in the level 0 slot of cur's last digit.
	// Slots of cur's digits on other levels are empty, or being entered.
	cur int64
	n   int

	occupied [Levels]uint64 // a bit for each slot that is not empty
	urgent   [Levels]uint64 // a bit for each slot with a timer filed as urgent
	levels   [Levels][slots]slot

	blocks blocks
	loaded int64 // keeps the loads of ahead from being optimized away

	// Ahead is set by Due now and then: the indices of timers that the next
	// calls will return, unless others get in between. The owner may load what
	// it keeps for them, all at once.
	Ahead []uint32
}

// New returns an empty wheel for nodes of s that stands at the given tick.
func New(s *slab.Slab, tick int64) *Wheel { return &Wheel{s: s, cur: tick} }

// Len returns the number of timers in the wheel.
func (w *Wheel) Len() int { return w.n }

// Insert files node n, at index i of the slab, under n.Tick, from 0 to
// [MaxTick]; a tick that has passed counts as the current one. The current tick
// is now. An urgent timer makes the wake-up for its slot an urgent one: see
// [Wheel.Next].
func (w *Wheel) Insert(i uint32, n *slab.Node, now int64, urgent bool) {
	if (now^w.cur)>>digitBits != 0 {
		w.catchUp(now)
	}
	w.n++
	w.file(i, n, urgent)
}

// catchUp moves cur on to now if no slot in use lies in between, so that
// timers are filed on the level that their distance from now asks for.
func (w *Wheel) catchUp(now int64) {
	if now <= w.cur {
		return
	}
	if w.n > 0 {
		if w.due() {
			return
		}
		if start, _, _ := w.first(); start <= now {
			return
		}
	}
	w.cur = now
}

// due reports whether a timer is due at cur, or a slot is being entered.
func (w *Wheel) due() bool {
	for l := range w.occupied {
		if w.occupied[l]&(1<<w.digit(l)) != 0 {
			return true
		}
	}
	return false
}

// digit returns cur's digit on level l.
func (w *Wheel) digit(l int) uint { return uint(w.cur>>(digitBits*l)) & slotMask }

func (w *Wheel) file(i uint32, n *slab.Node, urgent bool) {
	t := max(n.Tick, w.cur)
	l := 0
	if x := uint64(t ^ w.cur); x >= slots {
		l = (bits.Len64(x) - 1) / digitBits
	}
	d := uint(t>>(digitBits*l)) & slotMask
	sl := &w.levels[l][d]
	n.Where = FirstWhere + uint16(l)<<digitBits + uint16(d)
	if sl.n == 0 {
		sl.min = t
		w.occupied[l] |= 1 << d
	}
	sl.min = min(sl.min, t)
	w.add(&sl.bag, i, n)
	if urgent {
		w.urgent[l] |= 1 << d
	}
}

// Remove takes node n out of the wheel. n.Where must be one of the wheel's.
func (w *Wheel) Remove(n *slab.Node) {
	w.n--
	w.unfile(n)
}

func (w *Wheel) unfile(n *slab.Node) {
	at := n.Where - FirstWhere
	l, d := at>>digitBits, at&slotMask
	n.Where = 0
	sl := &w.levels[l][d]
	w.take(&sl.bag, n)
	if sl.n == 0 {
		w.occupied[l] &^= 1 << d
		w.urgent[l] &^= 1 << d
	}
}

// first returns the first slot in use after cur's digits: the tick that it
// begins with, its level and its number. There must be one. On a level where
// the slot of cur's own digit is in use, that slot is not looked at.
func (w *Wheel) first() (start int64, level int, d uint) {
	for l := range w.occupied {
		after := w.occupied[l] &^ (2<<w.digit(l) - 1)
		if after == 0 {
			continue
		}
		d := uint(bits.TrailingZeros64(after))
		shift := digitBits * l
		return w.cur>>(shift+digitBits)<<(shift+digitBits) | int64(d)<<shift, l, d
	}
	panic("wheel: a timer in no slot")
}

// State says what [Wheel.Due] found.
type State int

const (
	None State = iota // no timer is due
	Due               // a timer is due
	More              // there is more to be done before that is known; call again
)

// Due moves the wheel on to the current tick, or to the first tick at which a
// timer is due, and returns that timer's node without taking it out. It does a
// bounded amount of work: where there is more to be done it returns More, and
// the caller, having let others have the lock if it likes, calls again.
func (w *Wheel) Due(now int64) (uint32, State) {
	for w.n > 0 {
		if sl := &w.levels[0][w.digit(0)]; sl.n > 0 {
			w.Ahead = nil
			if sl.from%lookahead == 0 {
				w.Ahead = w.ahead(&sl.bag, lookahead)
			}
			return w.head(&sl.bag), Due
		}
		if l := w.entering(); l > 0 {
			w.refile(l)
			return 0, More
		}
		start, l, d := w.first()
		if w.opens(l, d, start) > now {
			// A slot that has begun, but whose first timer is not near yet,
			// holds cur back: it must be entered before cur passes.
			w.cur = max(w.cur, min(now, start-1))
			return 0, None
		}
		w.cur = start
	}
	w.cur = max(w.cur, now)
	return 0, None
}

// entering returns the lowest level on which the slot of cur's digit still has
// timers to be filed again, or 0.
func (w *Wheel) entering() int {
	for l := 1; l < Levels; l++ {
		if w.occupied[l]&(1<<w.digit(l)) != 0 {
			return l
		}
	}
	return 0
}

// refile moves a portion of the slot of cur's digit on level l to lower levels.
func (w *Wheel) refile(l int) {
	d := w.digit(l)
	sl := &w.levels[l][d]
	urgent := w.urgent[l]&(1<<d) != 0
	for _, i := range w.ahead(&sl.bag, portion) {
		n := w.s.Node(i)
		w.unfile(n)
		w.file(i, n, urgent)
	}
}

// opens returns the tick at which a slot wants to be entered: its first tick in
// use, less the time that moving its timers takes. On level 0 that is the
// slot's tick itself.
func (w *Wheel) opens(l int, d uint, start int64) int64 {
	if l == 0 {
		return start
	}
	sl := &w.levels[l][d]
	return max(start, sl.min-int64(sl.n)/movesPerTick)
}

// Next returns the tick at which the wheel next has something to do, and whether
// a timer filed as urgent is part of it. It returns false for ok when the wheel
// is empty. The tick is in the past when timers are due.
func (w *Wheel) Next() (tick int64, urgent, ok bool) {
	if w.n == 0 {
		return 0, false, false
	}
	if w.due() {
		return w.cur, true, true
	}
	start, l, d := w.first()
	return w.opens(l, d, start), w.urgent[l]&(1<<d) != 0, true
}

// Each calls f for every node in the wheel, in no particular order. f must not
// change the wheel.
func (w *Wheel) Each(f func(i uint32, n *slab.Node)) {
	for l := range w.levels {
		for d := range w.levels[l] {
			g := w.levels[l][d].bag
			for range g.n {
				i := w.head(&g)
				f(i, w.s.Node(i))
				if g.from++; g.from == blockLen {
					g.first, g.from = w.blocks.at(g.first).next, 0
				}
			}
		}
	}
}
