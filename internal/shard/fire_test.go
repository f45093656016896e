package shard

import (
	"testing"
	"time"
)

// BenchmarkFire fires timers that are due together, in the wheel and in the heap,
// on virtual time: what is measured is the work of the engine alone.
func BenchmarkFire(b *testing.B) {
	const n = 10_000
	for name, grid := range map[string]uint8{"wheel": Grid(int64(4 * time.Millisecond)), "heap": Exact} {
		b.Run(name, func(b *testing.B) {
			g := NewGroup(Config{Shards: 1, Manual: true})
			fired := 0
			f := func() { fired++ }
			for b.Loop() {
				b.StopTimer()
				now := g.clock()
				for k := range int64(n) {
					g.Start(&Timer{Deadline: now + 1_000_000 + k*97, Grid: grid, Kind: Call, Func: f}, now)
				}
				b.StartTimer()
				g.Advance(now + 10_000_000)
			}
			if fired != b.N*n {
				b.Fatalf("%d timers fired, want %d", fired, b.N*n)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/timer")
		})
	}
}
