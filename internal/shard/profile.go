package shard

import (
	"math/rand/v2"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/detent-go/detent/internal/slab"
)

// The profile of pending timers has one entry for each that is sampled, with the
// stack of whoever started it, under a number. A timer gets its number before it is
// started, since the profile's own lock may make one wait and must not be taken
// with a shard's; and it leaves the profile when whoever has ended it releases that
// (Shard.Unlock). In between its shard has the number, beside the node.

// profileName is what package runtime/pprof knows the profile by.
const profileName = "detent.timer"

var (
	profileFraction atomic.Int64 // one timer of so many is sampled; 0: none
	profileNumber   atomic.Uint64

	// profile is made when it is first asked for: a program that never does so
	// does not contain what writes profiles.
	profileOnce sync.Once
	profile     atomic.Pointer[pprof.Profile]
)

// ProfileFraction has one of n timers sampled from now on, all if n is 1, none if
// it is 0, and returns what it was before. A negative n changes nothing.
func ProfileFraction(n int) int {
	if n < 0 {
		return int(profileFraction.Load())
	}
	if n > 0 {
		profileOnce.Do(func() { profile.Store(pprof.NewProfile(profileName)) })
	}
	return int(profileFraction.Swap(int64(n)))
}

// Sample decides whether t, which is about to be reset, is sampled. The lock is not
// held. [Group.Start] does so itself.
func (t *Timer) Sample() {
	if n := profileFraction.Load(); n != 0 {
		t.sampled(n)
	}
}

// sampled puts t into the profile, or does not.
//
//go:noinline
func (t *Timer) sampled(n int64) {
	if n > 1 && rand.Int64N(n) != 0 {
		return
	}
	t.sample = profileNumber.Add(1)
	profile.Load().Add(t.sample, addFrames+ownFrames())
}

// addFrames is how many functions the stack of Profile.Add begins with for a skip
// of 0 that are not its caller: Add itself, whatever its documentation says.
const addFrames = 1

// own are the beginnings of the names of functions that the profile leaves out
// where they have started the timer.
var own = [...]string{"github.com/detent-go/detent/timer.", "github.com/detent-go/detent/internal/"}

// ownFrames returns how many functions of detent's its caller was called from,
// including itself.
func ownFrames() int {
	var pcs [16]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for n := 0; ; n++ {
		f, more := frames.Next()
		if !slices.ContainsFunc(own[:], func(prefix string) bool { return strings.HasPrefix(f.Function, prefix) }) {
			return n
		}
		if !more {
			return 0
		}
	}
}

// forget takes what is not pending any more out of the profile. No lock is held.
func forget(samples ...uint64) {
	for _, n := range samples {
		profile.Load().Remove(n)
	}
}

// keepSampleLocked notes that node i is that of t, which is sampled.
func (s *Shard) keepSampleLocked(i uint32, t *Timer) {
	p := &s.payloads[i/slab.ChunkSize]
	if p.samples == nil {
		p.samples = new([slab.ChunkSize]uint64)
	}
	p.samples[i%slab.ChunkSize] = t.sample
	s.sampled++
	t.sample = 0
}

// dropSampleLocked has Unlock take node i out of the profile, if it is in there.
func (s *Shard) dropSampleLocked(i uint32) {
	p, at := &s.payloads[i/slab.ChunkSize], i%slab.ChunkSize
	if p.samples != nil && p.samples[at] != 0 {
		s.unsampled = append(s.unsampled, p.samples[at])
		p.samples[at] = 0
		s.sampled--
	}
}

// forgetAll takes the timers of a closed shard out of the profile. Nobody else uses
// the payloads any more.
func (s *Shard) forgetAll() {
	for _, p := range s.payloads {
		if p.samples == nil {
			continue
		}
		for _, n := range p.samples {
			if n != 0 {
				forget(n)
			}
		}
	}
}
