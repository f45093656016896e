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
	after := func(d time.Duration, f func()) {
		done := make(chan struct{})
		now := g.clock()
		call := func() {
			defer close(done)
			f()
		}
		if _, _, ok := g.Start(&Timer{Deadline: now + int64(d), Kind: Call, Func: call}, now); !ok {
			t.Fatal("closed")
		}
		<-done
	}
	began := g.clock()
	for range 3 {
		after(2*time.Duration(calmDelay), func() {})
	}
	var w wakeup
	// A wake-up is the lane's own affair: only its thread may ask when it awoke.
	after(0, func() {
		s.Lock()
		s.wakeupLocked(&w, g.clock(), true)
		s.Unlock()
	})
	if w.armed < began {
		t.Errorf("a wake-up counts from %d, before the first timer was started, at %d", w.armed, began)
	}
}
