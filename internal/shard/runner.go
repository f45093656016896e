package shard

import (
	"runtime"
	"slices"
	"time"

	"github.com/detent-go/detent/internal/rt"
)

const (
	// watchInterval is how long a runner may be in one callback before it is
	// written off, in nanoseconds. That is looked at within one interval after;
	// or, where callbacks have all been short for a while, within calmDelay,
	// since moving the backstop is not free.
	watchInterval = int64(time.Millisecond)

	// shortCall is what a callback may take to be called by the waker's own
	// goroutine, in nanoseconds, and afterLong how many shorter ones have to
	// follow a longer one until the waker calls them itself again.
	shortCall = int64(50 * time.Microsecond)
	afterLong = 256

	// maxWave bounds how many runners are started at once.
	maxWave = 1024

	// fewCalls is how many callbacks a runner begins from one look of the
	// backstop to the next, a watchInterval at least, if they are so long that
	// more runners than Ps may help; and maxSlow how many runners there may be
	// then.
	fewCalls = 4
	maxSlow  = 128
)

// runner is a goroutine that calls callbacks. Its fields are guarded by the
// shard's mu.
type runner struct {
	calling bool   // inside a callback
	since   int64  // when the callback began
	lost    bool   // written off, and not in Shard.runners any more
	reader  bool   // the goroutine is the timerfd's reader
	wakeup  wakeup // of the goroutine's own from when it runs
	run     func() // Shard.run of it; constant
}

// spareRunners is how many runners that have left are kept to be used again, so
// that callbacks that come and go allocate nothing.
const spareRunners = 4

// addRunnerLocked adds a runner that the wakeup w is the reason for.
func (s *Shard) addRunnerLocked(w *wakeup) *runner {
	var r *runner
	if n := len(s.spare); n > 0 {
		r = s.spare[n-1]
		s.spare = s.spare[:n-1]
	} else {
		r = new(runner)
		r.run = func() { s.run(r) }
	}
	r.wakeup = *w
	s.runners = append(s.runners, r)
	return r
}

// spareLocked keeps runner r, which nobody refers to any more.
func (s *Shard) spareLocked(r *runner) {
	if len(s.spare) < spareRunners {
		*r = runner{run: r.run}
		s.spare = append(s.spare, r)
	}
}

// startRunnerLocked starts a goroutine that is a runner.
func (s *Shard) startRunnerLocked(w *wakeup, now int64) {
	r := s.addRunnerLocked(w)
	r.wakeup.handed, r.wakeup.begun = now, 0
	go r.run()
}

// readerCallsLocked reports whether the timerfd's reader is a runner.
func (s *Shard) readerCallsLocked() bool {
	for _, r := range s.runners {
		if r.reader {
			return true
		}
	}
	return false
}

func (s *Shard) removeRunnerLocked(r *runner) {
	if i := slices.Index(s.runners, r); i >= 0 {
		s.runners = slices.Delete(s.runners, i, i+1)
	}
}

// writeOffLocked writes off the runners that are blocked, and returns their
// number. Where callbacks are inline there is nobody to take over.
func (s *Shard) writeOffLocked(now int64) (lost int) {
	if len(s.runners) == 0 || s.group.inline {
		return 0
	}
	now = s.group.steady(now)
	s.runners = slices.DeleteFunc(s.runners, func(r *runner) bool {
		if !r.calling || now-r.since < watchInterval {
			return false
		}
		r.lost = true
		lost++
		if r.reader {
			s.precise.Replace()
		}
		return true
	})
	if lost > 0 {
		s.long = afterLong
	}
	return lost
}

// runnersWantedLocked returns how many runners to start, now that a callback is
// due and so many have been written off. watch says that the backstop asks,
// which after a burst has begun means that callbacks have been waiting for a
// while.
func (s *Shard) runnersWantedLocked(lost int, watch bool) int {
	n := len(s.runners)
	switch {
	case s.group.manual != nil:
		return s.manualWantedLocked()
	case s.group.inline:
		return max(1-n, 0)
	}
	made := s.calls - s.watched
	if watch {
		s.watched = s.calls
	}
	free := 0
	for _, r := range s.runners {
		if !r.calling {
			free++ // It will look for the next callback, or has yet to begin.
		}
	}
	switch {
	case n == 0 && lost > 0:
		s.wave = min(2*s.wave, maxWave)
		return s.wave
	case n == 0:
		s.wave = 1
		return 1
	case free == n, free > 0 && !watch:
		// Runners that have been started have not come to run: more would not
		// either. Or the next callback is about to be seen to.
		return 0
	case watch && made >= uint64(n) && made < uint64(fewCalls*n):
		// Long callbacks, each of which may be waiting for something. (With
		// fewer the machine has stood still, or they are about to be written
		// off.)
		return min(n, max(maxSlow-n, 0))
	case n >= runtime.GOMAXPROCS(0):
		return 0
	default:
		return 1
	}
}

// unlabel takes the labels off a goroutine that calls callbacks. One that advances
// a manual group is not ours, and keeps what it has.
func (s *Shard) unlabel() {
	if s.group.manual == nil {
		rt.Unlabel()
	}
}

// run is the life of a runner.
func (s *Shard) run(r *runner) {
	s.unlabel()
	if r.wakeup.begun == 0 {
		r.wakeup.begun = s.group.clock()
		if r.wakeup.begun-r.wakeup.handed > lookAt {
			s.blameQuota(&r.wakeup, r.wakeup.handed, r.wakeup.begun)
		}
	}
	held := false
	defer func() {
		// The callback may have ended the goroutine (runtime.Goexit), or be
		// panicking: then the lock is not held, and others must see to the rest.
		if !held {
			s.Lock()
		}
		s.leaveLocked(r)
		s.Unlock()
	}()
	s.Lock()
	s.drainLocked(r, &r.wakeup)
	held = true
}

// leaveLocked ends runner r, which is not used afterwards.
func (s *Shard) leaveLocked(r *runner) {
	s.removeRunnerLocked(r)
	if s.closed {
		return
	}
	s.spareLocked(r)
	if s.group.manual != nil {
		return // It fires when it is advanced, and only then.
	}
	now := s.group.clock()
	if s.group.lane != nil {
		s.laneLeavesLocked(now)
		return
	}
	if i, more := s.dueLocked(now, now); i != 0 || more {
		if n := s.runnersWantedLocked(s.writeOffLocked(now), false); n > 0 {
			w := atWork(now)
			s.startRunnerLocked(&w, now)
		}
	}
	s.armLocked(now)
}
