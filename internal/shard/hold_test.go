package shard

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"
)

// holds is how long the shard lock was held by one sort of operation.
type holds []int64

func (h *holds) add(since int64) { *h = append(*h, cpuTime()-since) }

func (h holds) report(b *testing.B, name string) {
	if len(h) == 0 {
		return
	}
	slices.Sort(h)
	b.ReportMetric(float64(h[len(h)/2]), name+"-p50-ns")
	b.ReportMetric(float64(h[len(h)*999/1000]), name+"-p99.9-ns")
	b.ReportMetric(float64(h[len(h)-1]), name+"-max-ns")
}

// BenchmarkLockHold measures how long single operations hold the shard lock
// while very many timers are pending, are started, stopped and reset, come due,
// and are filed again on lower levels of the wheel. The time of a whole operation
// stands for that of its hold, which is a little shorter. One hold of a drain is
// what drainLocked does before it lets others have the lock. The time is CPU time
// where that is to be had, or else the greatest values were mostly those of a
// machine that did something else meanwhile; it takes some 200 ns to read.
func BenchmarkLockHold(b *testing.B) {
	for _, pending := range []int{10_000, 1_000_000} {
		b.Run(fmt.Sprint(pending), func(b *testing.B) {
			if pending > 10_000 && testing.Short() {
				b.Skip("takes a second")
			}
			benchmarkLockHold(b, pending)
		})
	}
}

func benchmarkLockHold(b *testing.B, pending int) {
	runtime.LockOSThread() // its CPU time is read
	defer runtime.UnlockOSThread()
	const span = 10 * int64(time.Second)
	g := NewGroup(Config{Shards: 1, Manual: true})
	s := g.shards[0]
	rng := rand.New(rand.NewPCG(1, 2))
	nothing := func() {}
	timer := func() *Timer {
		now := g.clock()
		t := &Timer{Deadline: now + 2000 + rng.Int64N(span), Grid: Exact, Kind: Send, Func: nothing}
		if rng.IntN(8) > 0 {
			t.Grid = AutoGrid(t.Deadline - now)
		}
		return t
	}
	handles := make([]Handle, pending)
	for k := range handles {
		_, handles[k], _ = g.Start(timer(), g.clock())
	}
	var starts, stops, resets, drains holds
	for b.Loop() {
		for range 2000 {
			for range 8 {
				k := rng.IntN(len(handles))
				began := cpuTime()
				if s.Stop(handles[k]) {
					stops.add(began)
				}
				t := timer()
				began = cpuTime()
				_, handles[k], _ = g.Start(t, g.clock())
				starts.add(began)

				k = rng.IntN(len(handles))
				t = timer()
				began = cpuTime()
				s.LockToStart()
				if s.CurrentLocked(handles[k]) {
					handles[k], _, _ = s.ResetLocked(handles[k], t, g.clock())
				}
				s.EndReset(t)
				resets.add(began)
			}
			now := g.manual.now.Add(int64(time.Millisecond))
			for more := true; more; {
				began := cpuTime()
				s.Lock()
				more = drainOnce(s, now)
				s.Unlock()
				drains.add(began)
			}
		}
	}
	starts.report(b, "start")
	stops.report(b, "stop")
	resets.report(b, "reset")
	drains.report(b, "drain")
	b.ReportMetric(0, "ns/op")
}

// drainOnce is the work of one hold of the lock in drainLocked. It returns false
// when nothing is left.
func drainOnce(s *Shard, now int64) bool {
	w := atWork(now)
	for budget := batch; budget > 0; {
		i, more := s.dueLocked(now, now)
		switch {
		case more:
			budget -= moreCost
		case i == 0:
			return false
		default:
			budget--
			if a, h, _, ok := s.takeLocked(i, s.nodes.Node(i), &w, now); ok {
				a.fire(s, h)
			}
		}
	}
	return true
}
