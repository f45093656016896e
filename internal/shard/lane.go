package shard

import (
	"github.com/detent-go/detent/internal/rt"
	"github.com/detent-go/detent/internal/waker"
)

// LaneOptions is what the thread of a lane is to be like.
type LaneOptions = waker.LaneOptions

// alarm wakes a shard at a precise time: the timerfd or the thread of a lane. See
// package waker.
type alarm interface {
	Arm(at int64)
	Replace()
	Close()
	Wait()
}

// NewLane returns a group with one shard, which fires its timers and calls their
// callbacks on an OS thread of its own, where it also waits for them: it needs no
// other waker, and has none. Should the callback end its goroutine, then another
// thread takes over. In a synctest bubble no thread is made before a timer is started
// outside.
//
// Errors are those of [waker.NewLane].
func NewLane(o LaneOptions) (*Group, error) {
	g := NewGroup(Config{Lane: &o})
	if waker.LaneTells {
		g.shards[0].blame.Told = new(Told)
	}
	if _, bubbled := rt.Now(); bubbled {
		return g, waker.TryLane(o)
	}
	s := g.shards[0]
	s.starting = true
	p, err := s.newAlarm()
	if err != nil {
		return nil, err
	}
	s.Lock()
	s.precise = p
	s.Unlock()
	return g, nil
}

// newAlarm makes the shard's waker for precise times.
func (s *Shard) newAlarm() (alarm, error) {
	wake := func() { s.woken(true) }
	if s.group.lane == nil {
		clock := Monotonic
		if s.group.base != nil {
			clock = s.group.base.clock
		}
		return waker.NewPrecise(clock, wake)
	}
	return waker.NewLane(*s.group.lane, wake)
}

// checkAlarm ends the program if the lane could not be made late: its timers would
// never fire.
func (s *Shard) checkAlarm(err error) {
	if err != nil && s.group.lane != nil {
		panic("timer: lane made in a synctest bubble and used outside: " + err.Error())
	}
}

// urgent reports whether timers of the grid are armed with the waker for precise
// times: for a lane, which has no other, all of them.
func (s *Shard) urgent(grid uint8) bool { return s.group.lane != nil || urgent(grid) }

// laneLeavesLocked ends a runner, which is the thread of the lane. It arms the lane
// for what is to be done next, due or not: the goroutine that looks at it is this
// one, when it has returned, or takes over from it.
func (s *Shard) laneLeavesLocked(now int64) {
	s.armedPrecise = never
	s.armLocked(now)
}

// laneTellsLocked sets when the thread of a lane was awake: before the Go scheduler
// gave it a P, which is what running says. A thread that was awake before it was to
// wake had something else to do. Not every system tells.
func (s *Shard) laneTellsLocked(w *wakeup) {
	if l, ok := s.precise.(*waker.Lane); ok && waker.LaneTells {
		w.toldFrom, w.toldArmed, w.ready = 0, w.armed, min(max(l.AwakeAt(), w.armed), w.running)
	}
}

func (s *Shard) addLaneStatsLocked(sum *Stats) {
	l, ok := s.precise.(*waker.Lane)
	if !ok {
		return
	}
	sum.Spun += l.Spun()
	sum.Kept += l.Kept()
	if err := l.Err(); err != nil {
		sum.WakerErr = err
	}
}

// Spinner is that of package waker.
type Spinner = waker.Spinner
