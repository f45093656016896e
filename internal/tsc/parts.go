//go:build !detent_portable

package tsc

import (
	"sync"
	"time"
	"unsafe"
)

// Parts are those of a time.Time with a monotonic reading, in its own layout.
//
// Nothing else lets a package other than time set wall and monotonic parts each
// by itself; Time.Add, which moves both, costs 6 ns. The layout has been this
// since Go 1.9, but nobody promises it: [PartsKnown] compares it with what package
// time does, and where that is false, Parts must not be used.
type Parts struct {
	Wall uint64 // from the top: 1, 33 bits of seconds since 1885, 30 bits of nanoseconds
	Mono int64  // nanoseconds since the process began
	Loc  *time.Location
}

const (
	hasMonotonic = 1 << 63
	wallShift    = 30

	// since1885 is the time from 1885, where the seconds of Wall begin, to 1970.
	since1885 = (1969*365 + 1969/4 - 1969/100 + 1969/400 - (1884*365 + 1884/4 - 1884/100 + 1884/400)) * 86400
)

// Time puts the parts together.
func (p Parts) Time() time.Time { return *(*time.Time)(unsafe.Pointer(&p)) }

// Split takes a time apart. It reports false for one without a monotonic reading.
func Split(t time.Time) (Parts, bool) {
	if !PartsKnown() {
		return Parts{}, false
	}
	p := *(*Parts)(unsafe.Pointer(&t))
	return p, p.Wall&hasMonotonic != 0
}

// WallPart returns Wall for nanoseconds since 1970, and how many nanoseconds
// may be added to it before its second ends. It reports false for a time that
// Wall cannot hold, before 1885 or after 2157.
func WallPart(unix int64) (wall uint64, left int64, ok bool) {
	sec, nsec := unix/1e9, unix%1e9
	if nsec < 0 {
		sec, nsec = sec-1, nsec+1e9
	}
	sec += since1885
	return hasMonotonic | uint64(sec)<<wallShift | uint64(nsec), 1e9 - nsec, sec >= 0 && sec < 1<<33
}

var (
	partsOnce  sync.Once
	partsKnown bool
)

// PartsKnown tells whether Parts is the layout of the times of this Go version.
// In a testing/synctest bubble, where times have no monotonic reading, it is not.
func PartsKnown() bool {
	now := time.Now()
	if now == now.Round(0) {
		return false
	}
	partsOnce.Do(func() {
		partsKnown = unsafe.Sizeof(now) == unsafe.Sizeof(Parts{}) &&
			describes(now) && describes(now.Add(time.Hour+time.Nanosecond))
	})
	return partsKnown
}

// describes tells whether the parts of a time with a monotonic reading, changed,
// make the time that package time makes of the same changes.
func describes(t time.Time) bool {
	p := *(*Parts)(unsafe.Pointer(&t))
	wall, _, ok := WallPart(t.UnixNano())
	if !ok || p.Wall != wall {
		return false
	}
	for _, d := range []int64{1, 1e9 - 1, 1e9, 3600e9 + 1, -1} {
		moved := t.Add(time.Duration(d))
		wall, _, ok := WallPart(t.UnixNano() + d)
		if !ok || (Parts{wall, p.Mono + d, p.Loc}).Time() != moved {
			return false
		}
		// The monotonic part alone, and the wall part alone.
		if (Parts{p.Wall, p.Mono + d, p.Loc}).Time().Sub(t) != time.Duration(d) {
			return false
		}
		if (Parts{wall, p.Mono, p.Loc}).Time().Round(0) != moved.Round(0) {
			return false
		}
	}
	return true
}
