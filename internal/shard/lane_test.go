package shard

import (
	"testing"
	"time"
)

// TestLaneWakeupFrom: a wake-up of a lane counts from when it was armed for, however
// long the lane has been there: it has no backstop that could have been late.
func TestLaneWakeupFrom(t *testing.T) {
	g, err := NewLane(LaneOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	s := g.Shards()[0]
	wait := func(d time.Duration) {
		done := make(chan struct{})
		now := g.clock()
		if _, _, ok := g.Start(&Timer{Deadline: now + int64(d), Kind: Call, Func: func() { close(done) }}, now); !ok {
			t.Fatal("closed")
		}
		<-done
	}
	began := g.clock()
	for range 3 {
		wait(2 * time.Duration(calmDelay))
	}
	s.Lock()
	defer s.Unlock()
	var w wakeup
	s.wakeupLocked(&w, g.clock(), true)
	if w.armed < began {
		t.Errorf("a wake-up counts from %d, before the first timer was started, at %d", w.armed, began)
	}
}
