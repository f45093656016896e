//go:build detent_portable

package tsc

import "time"

// Parts are not known in a portable build.
type Parts struct {
	Wall uint64
	Mono int64
	Loc  *time.Location
}

// PartsKnown returns false.
func PartsKnown() bool { return false }

// Time returns the zero time.
func (p Parts) Time() time.Time { return time.Time{} }

// Split reports false.
func Split(t time.Time) (Parts, bool) { return Parts{}, false }

// WallPart reports false.
func WallPart(unix int64) (wall uint64, left int64, ok bool) { return 0, 0, false }
