package shard

import (
	"math"
	"os"
	"strconv"
	"testing"
	"time"
)

// seed returns the seed of a random test: that of the environment variable
// DETENT_SEED, to repeat a run, or a new one. It is printed when the test fails.
func seed(t testing.TB) uint64 {
	s := uint64(time.Now().UnixNano())
	if v := os.Getenv("DETENT_SEED"); v != "" {
		var err error
		if s, err = strconv.ParseUint(v, 10, 64); err != nil {
			t.Fatalf("DETENT_SEED: %v", err)
		}
	}
	t.Logf("to repeat: DETENT_SEED=%d", s)
	return s
}

// script is a sequence of operations in bytes, for the fuzzer as well as for
// the random test. After its end all bytes are 0.
type script []byte

func (s *script) byte() int64 {
	if len(*s) == 0 {
		return 0
	}
	b := (*s)[0]
	*s = (*s)[1:]
	return int64(b)
}

func (s *script) word() int64 { return s.byte()<<8 | s.byte() }

// lastTime is how far virtual time goes: timers that are rounded up to a later
// time are filed under the last tick.
const lastTime = maxTick<<TickShift - 1

// time takes a time from the script: near and far, next to borders of ticks and
// of slots, next to what another timer has, passed, or never.
func (w *world) time() int64 {
	var t int64
	switch kind := w.in.byte(); kind % 12 {
	case 0:
		t = w.now() + w.in.byte()
	case 1:
		t = w.now() + w.in.word()*1000
	case 2, 3, 4: // a border, of a slot of level kind/12 and beyond
		shift := TickShift + 6*(kind/12%9)
		t = w.now()>>min(shift, 62) + 1 + w.in.byte()%66
		if t > math.MaxInt64>>shift {
			return never
		}
		t = t<<shift + w.in.byte()%3 - 1
	case 5: // a few ticks
		t = (w.now()>>TickShift+w.in.byte()%16)<<TickShift + w.in.byte()*256
	case 6: // a distance of any magnitude
		t = w.now() + (w.in.word()<<16|w.in.word())<<(kind/8)
		if t < w.now() {
			return never
		}
	case 7:
		t = w.now() - w.in.word()*100
	case 8, 9, 10: // near another timer's
		r := w.pick()
		if r == nil {
			return w.now()
		}
		t = r.deadline
		if kind/12%2 == 1 {
			t = r.hi
		}
		if d := w.in.byte()%5 - 2; d < 0 || t < never-d {
			t += d
		}
	case 11:
		if kind/12%2 == 0 {
			return never - w.in.byte()
		}
		t = w.now() + 1<<(kind/4%40)
	}
	return max(0, t)
}

// grid takes a grid from the script.
func (w *world) grid() uint8 {
	switch b := w.in.byte(); {
	case b < 70:
		return Exact
	case b < 120:
		return heapGrid + uint8(b)%TickShift
	case b < 250:
		return uint8(b) % 18
	default:
		return uint8(63 - TickShift - 1 - 2*(b-250)) // up to the coarsest there is
	}
}

// limit is when a timer with the deadline and grid should fire at the latest,
// worked out the slow way.
func limit(deadline int64, grid uint8) int64 {
	switch {
	case grid == Exact:
		return deadline
	case grid >= heapGrid:
		slack := int64(1) << (grid - heapGrid)
		if deadline > never-slack {
			return never
		}
		return deadline + slack
	}
	unit := tick << grid
	n := deadline / unit
	if deadline%unit != 0 {
		n++
	}
	if n > maxTick>>grid {
		return maxTick << TickShift
	}
	return n * unit
}

func TestLimit(t *testing.T) {
	for _, deadline := range []int64{0, 1, tick - 1, tick, tick + 1, 1 << 40, 1<<40 + 1, lastTime, never - 1, never} {
		for grid := range 63 - TickShift {
			got, want := limitOf(deadline, uint8(grid)), limit(deadline, uint8(grid))
			if got != want {
				t.Errorf("limitOf(%d, %d) = %d, want %d", deadline, grid, got, want)
			}
			if got < deadline && got != maxTick<<TickShift {
				t.Errorf("limitOf(%d, %d) = %d is before the deadline", deadline, grid, got)
			}
		}
		for grid := heapGrid; grid < heapGrid+TickShift; grid++ {
			if got, want := limitOf(deadline, grid), limit(deadline, grid); got != want {
				t.Errorf("limitOf(%d, %d) = %d, want %d", deadline, grid, got, want)
			}
		}
		if got := limitOf(deadline, Exact); got != deadline {
			t.Errorf("limitOf(%d, Exact) = %d", deadline, got)
		}
	}
}

// TestGrid: the lateness that a grid allows is the greatest power of two within
// the slack.
func TestGrid(t *testing.T) {
	for shift := range 62 {
		for _, slack := range []int64{1<<shift - 1, 1 << shift, 1<<shift + 1} {
			grid := Grid(slack)
			switch {
			case slack == 0:
				if grid != Exact {
					t.Errorf("Grid(0) = %d", grid)
				}
				continue
			case grid == Exact || (grid >= heapGrid) != (slack < tick):
				t.Errorf("Grid(%d) = %d", slack, grid)
				continue
			}
			allowed := int64(1) << grid * tick
			if grid >= heapGrid {
				allowed = 1 << (grid - heapGrid)
			}
			if allowed > slack || allowed <= slack/2 {
				t.Errorf("Grid(%d) = %d allows %d ns", slack, grid, allowed)
			}
			// No deadline is rounded up by more.
			for _, deadline := range []int64{1, slack + 1, 1 << 61, 1<<61 + 1} {
				if late := limitOf(deadline, grid) - deadline; late < 0 || late > slack {
					t.Errorf("Grid(%d) = %d makes deadline %d late by %d", slack, grid, deadline, late)
				}
			}
		}
	}
	if grid := Grid(-1); grid != Exact {
		t.Errorf("Grid(-1) = %d", grid)
	}
}

// TestAutoGrid: the automatic slack is at most a thousandth of the duration.
func TestAutoGrid(t *testing.T) {
	for shift := range 62 {
		for _, d := range []int64{1<<shift - 1, 1 << shift, 1<<shift + 1, 3 << shift >> 1} {
			late := limitOf(1<<61+1, AutoGrid(d)) - (1<<61 + 1)
			if late < 0 || late > d/1024 {
				t.Errorf("AutoGrid(%d) = %d allows %d ns", d, AutoGrid(d), late)
			}
		}
	}
}
