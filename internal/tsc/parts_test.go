//go:build !detent_portable

package tsc

import (
	"testing"
	"testing/synctest"
	"time"
)

// The layout of a Go version that is not known here is no failure of the
// program, which then does without; but somebody should look.
func TestPartsKnown(t *testing.T) {
	if !PartsKnown() {
		t.Fatal("this Go version has another layout of time.Time")
	}
	synctest.Test(t, func(t *testing.T) {
		if PartsKnown() {
			t.Error("known of the times of a bubble, which have no monotonic reading")
		}
	})
}

func TestPartsRoundTrip(t *testing.T) {
	now := time.Now()
	p, ok := Split(now)
	if !ok || p.Time() != now {
		t.Errorf("Split(%v) = %v, %v, which makes %v", now, p, ok, p.Time())
	}
	if p, ok := Split(now.Round(0)); ok {
		t.Errorf("Split of a time without monotonic reading = %v", p)
	}
	p.Mono += int64(time.Second)
	if d := p.Time().Sub(now); d != time.Second {
		t.Errorf("the monotonic part moved by %v", d)
	}
	if !p.Time().Round(0).Equal(now.Round(0)) {
		t.Error("the wall part moved with it")
	}
}

func TestWallPart(t *testing.T) {
	for _, test := range []struct {
		wall time.Time
		ok   bool
	}{
		{time.Unix(0, 0), true},
		{time.Unix(1767225600, 123456789), true},
		{time.Unix(-1, 999999999), true},
		{time.Date(1885, 1, 1, 0, 0, 0, 0, time.UTC), true},
		{time.Date(1884, 12, 31, 23, 59, 59, 999999999, time.UTC), false},
		{time.Date(2157, 1, 1, 0, 0, 0, 0, time.UTC), true},
		{time.Date(2158, 1, 1, 0, 0, 0, 0, time.UTC), false},
	} {
		wall, left, ok := WallPart(test.wall.UnixNano())
		if ok != test.ok {
			t.Errorf("WallPart(%v): %v", test.wall, ok)
		}
		if !ok {
			continue
		}
		got := Parts{Wall: wall, Mono: 1, Loc: time.UTC}.Time()
		if !got.Equal(test.wall) {
			t.Errorf("WallPart(%v) makes %v", test.wall, got)
		}
		if want := 1e9 - int64(test.wall.Nanosecond()); left != want {
			t.Errorf("WallPart(%v): %d ns left in the second, want %d", test.wall, left, want)
		}
		last := Parts{Wall: wall + uint64(left) - 1, Mono: 1, Loc: time.UTC}.Time()
		if want := test.wall.Truncate(time.Second).Add(time.Second - 1); !last.Equal(want) {
			t.Errorf("the end of the second of %v is %v", test.wall, last)
		}
	}
}
