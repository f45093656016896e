package affinity

import (
	"runtime"
	"sync"
	"testing"
)

// TestGet: every number is in range, and one goroutine that stays on its P gets
// the same one.
func TestGet(t *testing.T) {
	for _, n := range []int{1, 2, 3, 64} {
		a := New(n)
		seen := make([]int, n)
		var mu sync.Mutex
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for k := range 1000 {
					i := a.Get()
					mu.Lock()
					seen[i]++
					mu.Unlock()
					if k%100 == 0 {
						runtime.GC()
					}
				}
			})
		}
		wg.Wait()
		t.Logf("%d sets: %v", n, seen)
	}
}

// TestStays: without a collection in between, a P keeps its set.
func TestStays(t *testing.T) {
	old := runtime.GOMAXPROCS(1)
	defer runtime.GOMAXPROCS(old)
	a := New(64)
	changed := 0
	last := a.Get()
	for range 1000 {
		if i := a.Get(); i != last {
			changed++
			last = i
		}
	}
	// The race detector makes a pool drop a quarter of what it is given.
	if changed > 500 {
		t.Errorf("the set changed %d times in 1000", changed)
	}
}

func BenchmarkGet(b *testing.B) {
	a := New(runtime.GOMAXPROCS(0))
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			a.Get()
		}
	})
}
