package waker

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/detent-go/detent/internal/rt"
)

// readers returns the clocks that there are.
func readers(t *testing.T) map[Clock]func() (int64, bool) {
	all := map[Clock]func() (int64, bool){}
	for _, c := range []Clock{Monotonic, Boottime, Realtime} {
		read, err := c.Reader()
		switch {
		case err == nil:
			all[c] = read
		case c != Boottime || !errors.Is(err, errors.ErrUnsupported):
			t.Fatalf("clock %d: %v", c, err)
		}
	}
	return all
}

// TestReaders: a clock passes as fast as monotonic time, if nobody sets it, and the
// wall clock is package time's.
func TestReaders(t *testing.T) {
	for c, read := range readers(t) {
		for range 100 {
			m1, _ := rt.Now()
			first, _ := read()
			m2, _ := rt.Now()
			second, bubbled := read()
			m3, _ := rt.Now()
			// A nanosecond for what readings are rounded to.
			if d := second - first; bubbled || d < 0 || c != Realtime && d > m3-m1+1 || m2 < m1 {
				t.Fatalf("clock %d went on by %d ns within %d, in a bubble %v", c, d, m3-m1, bubbled)
			}
		}
	}
	before := time.Now().Round(0)
	ns, _ := readReal()
	if after := time.Now().Round(0); time.Unix(0, ns).Before(before) || after.Before(time.Unix(0, ns)) {
		t.Errorf("the wall clock is read as %v between %v and %v", time.Unix(0, ns), before, after)
	}
}

// TestReadersBubbled: in a bubble readers say so.
func TestReadersBubbled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for c, read := range readers(t) {
			if _, bubbled := read(); !bubbled {
				t.Errorf("clock %d does not see the bubble", c)
			}
		}
	})
}

// TestWallOffset: the offset lies between those of readings around it.
func TestWallOffset(t *testing.T) {
	read, err := bootReader()
	if err != nil {
		read = rt.Now
	}
	for range 100 {
		s1, _ := read()
		w1, _ := readReal()
		got := WallOffset()
		w2, _ := readReal()
		s2, _ := read()
		if got < w1-s2 || got > w2-s1 {
			t.Fatalf("WallOffset = %d, not from %d to %d", got, w1-s2, w2-s1)
		}
	}
}
