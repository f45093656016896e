package rt

import (
	"runtime"
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

// TestNowIsTime: Now passes as fast as package time.
func TestNowIsTime(t *testing.T) {
	for range 100 {
		before := time.Now()
		first, _ := Now()
		mid := time.Now()
		second, _ := Now()
		after := time.Now()
		if d := time.Duration(second - first); d < 0 || d > after.Sub(before) {
			t.Fatalf("Now went on by %v within %v", d, after.Sub(before))
		}
		if since := time.Duration(second); since < mid.Sub(started) || since > after.Sub(started) {
			t.Fatalf("Now = %v, package time counts %v to %v", since, mid.Sub(started), after.Sub(started))
		}
	}
}

// TestBubble: inside a bubble Now says so, wherever the bubble's clock stands;
// and goes on to work outside.
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
	// At the real time, and around it.
	t.Run("today", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			for _, off := range []time.Duration{-24 * time.Hour, -time.Second, 0, time.Millisecond, time.Hour} {
				time.Sleep(time.Until(real.Add(off)))
				if ns, bubbled := Now(); !bubbled {
					t.Errorf("Now = %d, not in a bubble, %v after the real time", ns, off)
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
				runtime.Gosched()
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		for range 40_000 { // from 2000 to 2032
			time.Sleep(7 * time.Hour)
			if ns, bubbled := Now(); !bubbled {
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
