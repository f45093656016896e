package netpoll114

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/detent-go/detent/internal/suite"
)

// TestRunq: of very many tasks that one thread puts, and it and others take, each is
// taken once, and the owner sees its queue full and empty.
func TestRunq(t *testing.T) {
	n := suite.Scale(300_000)
	ran := make([]atomic.Int32, n)
	var taken atomic.Int64
	var q runq
	var done atomic.Bool
	var thieves sync.WaitGroup
	var stolen atomic.Int64
	for range 3 {
		thieves.Go(func() {
			var mine runq
			for !done.Load() {
				one, k := mine.steal(&q)
				if one == nil {
					runtime.Gosched()
					continue
				}
				stolen.Add(int64(k))
				for ; one != nil; one = mine.get() {
					(*one)()
				}
			}
		})
	}
	full := 0
	for i := range n {
		task := task(func() { ran[i].Add(1); taken.Add(1) })
		for !q.put(&task) {
			full++
			if one := q.get(); one != nil {
				(*one)()
			}
		}
		if i%3 == 0 {
			if one := q.get(); one != nil {
				(*one)()
			}
		}
		if i%1000 == 0 {
			runtime.Gosched()
		}
	}
	for one := q.get(); one != nil; one = q.get() {
		(*one)()
	}
	suite.Eventually(t, "all tasks were taken", func() bool { return taken.Load() >= int64(n) })
	done.Store(true)
	thieves.Wait()
	for i := range ran {
		if k := ran[i].Load(); k != 1 {
			t.Fatalf("task %d ran %d times", i, k)
		}
	}
	t.Logf("%d of %d stolen, full %d times", stolen.Load(), n, full)
}

// TestRunqHalf: a thief takes half, rounded up, the oldest.
func TestRunqHalf(t *testing.T) {
	for n := range runqSize + 1 {
		var from, to runq
		var order []int
		for i := range n {
			task := task(func() { order = append(order, i) })
			if !from.put(&task) {
				t.Fatalf("no room for task %d", i)
			}
		}
		if n == runqSize {
			var more task
			if from.put(&more) {
				t.Fatal("room for more than there is")
			}
		}
		one, k := to.steal(&from)
		if k != (n+1)/2 || from.len() != n/2 || (one == nil) != (n == 0) || n > 0 && to.len() != k-1 {
			t.Fatalf("of %d stole %d, %d left, %d in the thief's queue", n, k, from.len(), to.len())
		}
		for _, q := range []*runq{&to, &from} {
			if q == &from && one != nil {
				(*one)()
			}
			for next := q.get(); next != nil; next = q.get() {
				(*next)()
			}
		}
		for i, got := range order {
			if got != i {
				t.Fatalf("order of %d: %v", n, order)
			}
		}
	}
}

func TestMilliseconds(t *testing.T) {
	for _, c := range []struct {
		ns   int64
		want int
	}{{-5, 0}, {0, 0}, {1, 1}, {999_999, 1}, {1_000_000, 1}, {1_999_999, 1}, {2_000_000, 2}, {1e15, 1e9}, {1 << 62, 1e9}} {
		if got := milliseconds(c.ns); got != c.want {
			t.Errorf("milliseconds(%d) = %d, want %d", c.ns, got, c.want)
		}
	}
}
