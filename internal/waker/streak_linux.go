//go:build linux && !detent_portable

package waker

// streak is for a goroutine that wakes timers again and again because the next one
// is due whenever it has seen to the last: it has others have their turn now and
// then. Nobody else would. While it does not wait it keeps its P; the goroutines
// that it has made ready queue there; and the scheduler cannot take the P away, or
// only after very many tries at 10 ms each, because a request to preempt a goroutine
// that is pinned comes to nothing (runtime.newstack), and this one is pinned nearly
// all the time.
type streak struct {
	n     int
	since int64
}

const (
	// After mostWakes wakes without a wait, or longestStreak of them, in nanoseconds,
	// it is the others' turn: often enough for a receiver, and so seldom that the cost
	// does not show.
	mostWakes     = 8
	longestStreak = int64(100_000)
)

// again takes note of a wake without a wait before it, at the time now. It returns
// true, and begins anew, when others are to have their turn first.
func (s *streak) again(now int64) bool {
	if s.n == 0 {
		s.since = now
	}
	s.n++
	if s.n < mostWakes && now-s.since < longestStreak {
		return false
	}
	s.n = 0
	return true
}

// waited takes note of a wait.
func (s *streak) waited() { s.n = 0 }
