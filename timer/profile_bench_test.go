package timer_test

import (
	"testing"
	"time"
)

// BenchmarkStartStop is a timer that is started and stopped at once, one that is
// pushed back, and one that is reset to be due earlier.
func BenchmarkStartStop(b *testing.B) {
	s := mustNew(b, nil)
	f := func() {}
	b.Run("startstop", func(b *testing.B) {
		for b.Loop() {
			s.AfterFunc(30*time.Second, f).Stop()
		}
	})
	b.Run("push", func(b *testing.B) {
		t := s.AfterFunc(30*time.Second, f)
		for b.Loop() {
			t.Reset(30 * time.Second)
		}
		t.Stop()
	})
	b.Run("reset", func(b *testing.B) {
		t := s.AfterFunc(30*time.Second, f)
		d := 30 * time.Second
		for b.Loop() {
			d = 50*time.Second - d // 30 s and 20 s in turn
			t.Reset(d)
		}
		t.Stop()
	})
}
