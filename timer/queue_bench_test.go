package timer

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/detent-go/detent/internal/shard"
)

// Each benchmark measures package time and a Queue in turn, so that their ratio
// holds however fast or busy the machine is:
//
//	go test -run '^$' -bench Queue -count 5 ./timer
//
// With ten million pending, package time alone needs 1.5 GB.

// benchPending are the numbers of other timers pending. A run of -benchtime=1x,
// which only shows that the benchmarks work, is small.
func benchPending() []int {
	if once() {
		return []int{0, 1000}
	}
	return []int{0, 1_000_000, 10_000_000}
}

func once() bool {
	f := flag.Lookup("test.benchtime")
	return f != nil && f.Value.String() == "1x"
}

func sizeName(n int) string {
	if n >= 1_000_000 {
		return fmt.Sprintf("%dM", n/1_000_000)
	}
	return fmt.Sprint(n)
}

// BenchmarkQueueStartStop is a timer that is started and stopped: at once (now),
// or when a thousand others have been started (ring); and the same from all Ps
// (procs). Timers of 30 s, as timeouts are; of 1 s, for which a queue reads the
// clock each time (short); and with the deadline given (at). The others pending
// are due in one to two hours. Those of package time are gone when the queue is
// measured, since it is woken by package time.
func BenchmarkQueueStartStop(b *testing.B) {
	svc := mustService(b)
	for _, n := range benchPending() {
		b.Run(sizeName(n), func(b *testing.B) {
			b.Run("std", func(b *testing.B) { startStopStd(b, n) })
			runtime.GC()
			b.Run("detent", func(b *testing.B) { startStopQueue(b, svc, n) })
		})
	}
}

func startStopStd(b *testing.B, n int) {
	f := func() {}
	others := make([]*time.Timer, n)
	for k := range others {
		others[k] = time.AfterFunc(time.Hour+rand.N(time.Hour), f)
	}
	b.Run("now", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			time.AfterFunc(30*time.Second, f).Stop()
		}
	})
	b.Run("short", func(b *testing.B) {
		for b.Loop() {
			time.AfterFunc(time.Second, f).Stop()
		}
	})
	b.Run("ring", func(b *testing.B) {
		var ring [1000]*time.Timer
		for k := range ring {
			ring[k] = time.AfterFunc(30*time.Second, f)
		}
		k := 0
		for b.Loop() {
			ring[k].Stop()
			ring[k] = time.AfterFunc(30*time.Second, f)
			k = (k + 1) % len(ring)
		}
		for _, t := range ring {
			t.Stop()
		}
	})
	b.Run("procs", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				time.AfterFunc(30*time.Second, f).Stop()
			}
		})
	})
	for _, t := range others {
		t.Stop()
	}
}

func startStopQueue(b *testing.B, svc *Service, n int) {
	q := NewQueue(svc, func([]Expired[uint64]) {})
	defer q.Close()
	for k := range n {
		q.Add(time.Hour+rand.N(time.Hour), uint64(k))
	}
	b.Run("now", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			q.Stop(q.Add(30*time.Second, 1))
		}
	})
	b.Run("short", func(b *testing.B) {
		for b.Loop() {
			q.Stop(q.Add(time.Second, 1))
		}
	})
	b.Run("at", func(b *testing.B) {
		fixed := NewQueue(svc.WithSlack(10*time.Millisecond), func([]Expired[uint64]) {})
		defer fixed.Close()
		at := time.Now().Add(30 * time.Second)
		for b.Loop() {
			fixed.Stop(fixed.AddAt(at, 1))
		}
	})
	b.Run("ring", func(b *testing.B) {
		var ring [1000]Handle
		k := 0
		for b.Loop() {
			q.Stop(ring[k])
			ring[k] = q.Add(30*time.Second, 1)
			k = (k + 1) % len(ring)
		}
		for _, h := range ring {
			q.Stop(h)
		}
	})
	b.Run("procs", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				q.Stop(q.Add(30*time.Second, 1))
			}
		})
	})
}

// BenchmarkQueueReset pushes random ones of the pending timers back.
func BenchmarkQueueReset(b *testing.B) {
	svc := mustService(b)
	n := benchPending()[1]
	q := NewQueue(svc, func([]Expired[uint64]) {})
	defer q.Close()
	std, handles := make([]*time.Timer, n), make([]Handle, n)
	for k := range n {
		std[k] = time.AfterFunc(time.Hour, func() {})
		handles[k] = q.Add(time.Hour, uint64(k))
	}
	b.Run(sizeName(n)+"/std", func(b *testing.B) {
		for b.Loop() {
			std[rand.IntN(n)].Reset(2 * time.Hour)
		}
	})
	b.Run(sizeName(n)+"/detent", func(b *testing.B) {
		for b.Loop() {
			q.Reset(handles[rand.IntN(n)], 2*time.Hour)
		}
	})
	for _, t := range std {
		t.Stop()
	}
}

// BenchmarkQueueExpire delivers timers that are all due at the same time: the
// time from then until the last has been delivered, for each of them.
func BenchmarkQueueExpire(b *testing.B) {
	const span = 50 * time.Millisecond
	n := 200_000
	if once() {
		n = 1000
	}
	// due runs start, which starts n timers due at the time that it is given,
	// and waits for them; in rounds, as many as b.N asks for.
	due := func(b *testing.B, start func(at time.Time, done *atomic.Int64)) {
		var took time.Duration
		rounds := b.N/n + 1
		for range rounds {
			var done atomic.Int64
			at := time.Now().Add(span + time.Duration(n)*time.Microsecond)
			start(at, &done)
			if time.Until(at) < 0 {
				b.Fatal("starting the timers took until they were due")
			}
			for done.Load() < int64(n) {
				time.Sleep(100 * time.Microsecond)
			}
			took += time.Since(at)
		}
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(float64(took)/float64(rounds*n), "ns/expiry")
		b.ReportMetric(float64(rounds*n)/took.Seconds()/1e6, "M/s")
	}
	b.Run("std", func(b *testing.B) {
		due(b, func(at time.Time, done *atomic.Int64) {
			f := func() { done.Add(1) }
			for range n {
				time.AfterFunc(time.Until(at), f)
			}
		})
	})
	svc := mustService(b)
	b.Run("handler/detent", func(b *testing.B) {
		var sum *atomic.Int64
		q := NewQueue(svc, func(batch []Expired[uint64]) { sum.Add(int64(len(batch))) })
		defer q.Close()
		due(b, func(at time.Time, done *atomic.Int64) {
			sum = done
			for k := range n {
				q.AddAt(at, uint64(k))
			}
		})
	})
	// Those below leave out the wake-up: the time is virtual, and all of it is
	// work of one P. The timers are due in the order in which they were added,
	// as timeouts are; or in none, which takes a cache miss for each level of the
	// wheel that they have passed, once they do not fit into the cache.
	for _, random := range []bool{false, true} {
		for _, pendings := range []int{n, 10 * n} {
			d := func(k int) time.Duration { return 30*time.Second + time.Duration(k)*time.Microsecond }
			order := "order"
			if random {
				d = func(int) time.Duration { return 30*time.Second + rand.N(10*time.Second) }
				order = "random"
			}
			b.Run(order+"/"+sizeName(pendings)+"/poll/detent", func(b *testing.B) {
				svc, g := manualService(AutoSlack, 1)
				q := NewQueue[uint64](svc, nil)
				buf := make([]Expired[uint64], queueBatch)
				expire(b, q, g, pendings, d, func() {
					for q.Len() > 0 {
						q.Poll(buf)
					}
				})
			})
			b.Run(order+"/"+sizeName(pendings)+"/handler/detent", func(b *testing.B) {
				svc, g := manualService(AutoSlack, 1)
				q := NewQueue(svc, func([]Expired[uint64]) {})
				expire(b, q, g, pendings, d, func() {})
			})
		}
	}
}

// expire adds n timers to q, of durations d, and measures how long it takes to
// advance g until all of them are due and deliver them, with poll or by itself.
func expire(b *testing.B, q *Queue[uint64], g *shard.Group, n int, d func(k int) time.Duration, poll func()) {
	rounds := b.N/n + 1
	b.ResetTimer()
	for range rounds {
		b.StopTimer()
		for k := range n {
			q.Add(d(k), uint64(k))
		}
		now, _ := g.Now()
		b.StartTimer()
		g.Advance(now + int64(time.Minute))
		poll()
	}
	if st := q.Stats(); st.Fired != uint64(rounds*n) {
		b.Fatalf("%d of %d were delivered", st.Fired, rounds*n)
	}
	each := float64(b.Elapsed()) / float64(rounds*n)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(each, "ns/expiry")
	b.ReportMetric(1e3/each, "M/s")
}

// BenchmarkQueueGC is a collection with timers pending, and with none; and how
// much memory the timers take.
func BenchmarkQueueGC(b *testing.B) {
	svc := mustService(b)
	collect := func(b *testing.B, n int, before uint64) {
		bytes := float64(heapInUse()-before) / float64(max(n, 1))
		for b.Loop() {
			runtime.GC()
		}
		b.ReportMetric(float64(b.Elapsed())/float64(b.N)/1e6, "ms/GC")
		if n > 0 {
			b.ReportMetric(bytes, "B/timer")
		}
	}
	b.Run("empty", func(b *testing.B) { collect(b, 0, heapInUse()) })
	for _, n := range benchPending()[1:] {
		b.Run(sizeName(n)+"/std", func(b *testing.B) {
			before := heapInUse()
			f := func() {}
			var all []*time.Timer
			for range n {
				all = append(all, time.AfterFunc(time.Hour+rand.N(time.Hour), f))
			}
			collect(b, n, before)
			for _, t := range all {
				t.Stop()
			}
		})
		b.Run(sizeName(n)+"/detent", func(b *testing.B) {
			before := heapInUse()
			q := NewQueue(svc, func([]Expired[uint64]) {})
			for k := range n {
				q.Add(time.Hour+rand.N(time.Hour), uint64(k))
			}
			collect(b, n, before)
			if err := q.Close(); err != nil {
				b.Error(err)
			}
		})
	}
}

func heapInUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func mustService(b *testing.B) *Service {
	s, err := New(nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	return s
}
