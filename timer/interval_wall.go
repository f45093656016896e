package timer

import (
	"runtime"
	"sync"
	"time"
	"weak"
)

// An [Interval] of a [Realtime] service goes by monotonic time, or is aligned: when
// the wall clock is set, what it has to wait for is another time of the service's
// clock. So the service tells those that there are. It knows them by weak
// references, since an Interval need not be stopped.

// followers are the intervals of a service to be told that its clock has been set.
type followers struct {
	mu  sync.Mutex
	all map[weak.Pointer[Interval]]struct{}
}

// add adds an interval, until it is collected.
func (f *followers) add(iv *Interval) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all == nil {
		f.all = map[weak.Pointer[Interval]]struct{}{}
	}
	p := weak.Make(iv)
	f.all[p] = struct{}{}
	runtime.AddCleanup(iv, f.remove, p)
}

func (f *followers) remove(p weak.Pointer[Interval]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.all, p)
}

// tell tells the intervals.
func (f *followers) tell() {
	f.mu.Lock()
	list := make([]*Interval, 0, len(f.all))
	for p := range f.all {
		if iv := p.Value(); iv != nil {
			list = append(list, iv)
		}
	}
	f.mu.Unlock()
	for _, iv := range list {
		iv.clockSet()
	}
}

// clockSet has those who wait look at the schedule again.
func (iv *Interval) clockSet() {
	iv.mu.Lock()
	defer iv.mu.Unlock()
	if iv.stopped {
		return
	}
	if iv.changed != nil {
		close(iv.changed)
		iv.changed = nil
	}
	switch {
	case iv.f != nil && !iv.calling && iv.t != nil:
		iv.armLocked()
	case iv.f == nil && iv.armed != notArmed:
		now := iv.now()
		iv.armed = saturated(now.mono, iv.sched.wait(now))
		iv.t.setAt(iv.deadline(now))
	}
}

// steadyNow is now for an interval on the wall clock.
func (iv *Interval) steadyNow() moment {
	t := time.Now()
	return moment{mono: t.Sub(iv.base), wall: t.Round(0)}
}
