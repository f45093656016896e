package rt

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestNowMonotone reads the clock from several goroutines: it never steps back,
// for any of them nor from one to another.
func TestNowMonotone(t *testing.T) {
	var mu sync.Mutex
	last := int64(0)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			own := int64(0)
			for range 5000 {
				ns, bubbled := Now()
				if bubbled || ns < own {
					t.Errorf("Now = %d, %v after %d", ns, bubbled, own)
					return
				}
				own = ns
				mu.Lock()
				ns, bubbled = Now()
				if bubbled || ns < last {
					t.Errorf("Now = %d, %v after %d of another goroutine", ns, bubbled, last)
				}
				last = ns
				mu.Unlock()
			}
		})
	}
	wg.Wait()
}

// TestNowIsTime: Now passes as fast as package time, and AtTime takes it back.
func TestNowIsTime(t *testing.T) {
	for range 100 {
		before := time.Now()
		ns, _ := Now()
		after := time.Now()
		at := AtTime(ns)
		if at.Before(before) || at.After(after) {
			t.Fatalf("AtTime(Now()) = %v, between %v and %v", at, before, after)
		}
		if at == at.Round(0) {
			t.Fatal("AtTime has no monotonic reading")
		}
	}
	if d := AtTime(5_000).Sub(AtTime(3_000)); d != 2_000 {
		t.Errorf("times of 5000 and 3000 are %v apart", d)
	}
}

// TestVerifiedFarAway: a reading far from the last verified one is looked at
// again, and found to be real.
func TestVerifiedFarAway(t *testing.T) {
	for _, v := range []int64{-1 << 62, -1, 0, 1 << 40, 1<<63 - 1} {
		verified.Store(v)
		for range 2 {
			if ns, bubbled := Now(); bubbled {
				t.Fatalf("verified %d: Now, %d, says that it is in a bubble", v, ns)
			}
		}
	}
}

// TestBubble: inside a bubble Now says so, wherever the bubble's clock stands
// but next to the real one; and goes on to work outside.
func TestBubble(t *testing.T) {
	real := time.Now()
	steps := map[string]time.Duration{
		"start":       0,
		"a second":    time.Second,
		"a year":      365 * 24 * time.Hour,
		"thirty":      30 * 365 * 24 * time.Hour,
		"two hundred": 200 * 365 * 24 * time.Hour,
	}
	for name, step := range steps {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(step)
				check := func() {
					if ns, bubbled := Now(); !bubbled {
						t.Errorf("Now = %d, not in a bubble, at %v", ns, time.Now())
					}
				}
				for range 100 {
					check()
					time.Sleep(time.Millisecond)
				}
				var wg sync.WaitGroup
				wg.Go(check) // another goroutine of the bubble
				time.AfterFunc(time.Minute, check)
				wg.Wait()
				time.Sleep(2 * time.Minute)
				synctest.Wait()
			})
			if _, bubbled := Now(); bubbled {
				t.Error("Now outside says that it is inside")
			}
		})
	}
	// Within a day of the real time, but not a second.
	t.Run("today", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			for _, off := range []time.Duration{-24 * time.Hour, -time.Hour, -5 * time.Minute} {
				time.Sleep(time.Until(real.Add(off)))
				if ns, bubbled := Now(); !bubbled {
					t.Errorf("Now = %d, not in a bubble, %v before the real time", ns, -off)
				}
			}
		})
	})
}

// TestBubbleBesides reads the clock inside and outside at the same time: what
// one of them has found does not mislead the other.
func TestBubbleBesides(t *testing.T) {
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if ns, bubbled := Now(); bubbled || ns < 0 {
					t.Errorf("outside: Now = %d, %v", ns, bubbled)
					return
				}
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		for range 40_000 { // from 2000 to 2032
			time.Sleep(7 * time.Hour)
			if ns, bubbled := Now(); !bubbled {
				// The bubble's clock passes the real time in such steps.
				if off := time.Until(AtTime(ns)); off.Abs() < time.Minute {
					continue
				}
				t.Errorf("inside, at %v: Now = %d, not in a bubble", time.Now(), ns)
				return
			}
		}
	})
	close(stop)
	wg.Wait()
}

func BenchmarkNow(b *testing.B) {
	for b.Loop() {
		Now()
	}
}
