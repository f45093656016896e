package timer

import (
	"sync"
	"time"

	"github.com/detent-go/detent/internal/shard"
)

// sleeper is what a sleeping goroutine waits on.
type sleeper struct{ wake chan struct{} }

// Fire wakes the goroutine. The channel has room: a sleeper is woken once a
// Sleep.
func (s *sleeper) Fire(*shard.Shard, shard.Handle) { s.wake <- struct{}{} }

var sleepers = sync.Pool{New: func() any { return &sleeper{make(chan struct{}, 1)} }}

// Sleep pauses the current goroutine for at least the duration d. A negative or
// zero duration causes Sleep to return immediately. Sleep returns early when the
// service is closed.
func (s *Service) Sleep(d time.Duration) {
	if d <= 0 {
		return
	}
	now, inBubble := s.e.group.Now()
	if inBubble {
		if s.e.group.Closed() {
			closedPanic("Sleep")
		}
		time.Sleep(d)
		return
	}
	// Not before: a channel made in a bubble must not get into the pool.
	sl := sleepers.Get().(*sleeper)
	st := shard.Timer{Kind: shard.Sleep, Target: sl}
	s.schedule(&st, d, now)
	if _, _, ok := s.e.group.Start(&st, now); !ok {
		closedPanic("Sleep")
	}
	<-sl.wake
	sleepers.Put(sl)
}
