package shard

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

// TestInlineOneByOne: the inline callbacks of a shard run one after another, also
// when very many are due at once.
func TestInlineOneByOne(t *testing.T) {
	n := int64(30_000)
	if testing.Short() || race {
		n = 5000
	}
	for _, grid := range grids {
		g := newReal(t, Config{Shards: 1, Inline: true})
		var called, running, most atomic.Int64
		for range n {
			start(t, g, Call, grid, 20*time.Millisecond, func(*Shard, Handle) {
				if now := running.Add(1); now > most.Load() {
					most.Store(now)
				}
				for began := time.Now(); time.Since(began) < time.Microsecond; {
				}
				running.Add(-1)
				called.Add(1)
			})
		}
		eventually(t, "all callbacks", func() bool { return called.Load() == n })
		if most.Load() > 1 {
			t.Errorf("grid %d: %d inline callbacks of one shard ran at the same time", grid, most.Load())
		}
	}
}

// TestTickOverload starts more tickers than a machine can keep up with. They
// drop ticks; but goroutines do not pile up, and others have their turn.
func TestTickOverload(t *testing.T) {
	g := newReal(t, Config{Shards: 1})
	tickers, limit := 20_000, 300*time.Millisecond
	if race {
		tickers = 5000
	}
	before := runtime.NumGoroutine()
	var most int
	for range tickers {
		start(t, g, Tick, Exact, 100*time.Microsecond, func(*Shard, Handle) {})
		most = max(most, runtime.NumGoroutine()-before)
	}
	for began := time.Now(); time.Since(began) < limit; time.Sleep(time.Millisecond) {
		most = max(most, runtime.NumGoroutine()-before)
		if most > 1000 {
			t.Fatalf("%d goroutines more", most) // before they are too many to end the test
		}
	}
	if most > 64 {
		t.Errorf("%d goroutines more for tickers that are behind", most)
	}
	var woken atomic.Int64
	for _, grid := range grids {
		start(t, g, Sleep, grid, time.Millisecond, func(*Shard, Handle) { woken.Add(1) })
	}
	eventually(t, "sleepers beside the tickers", func() bool { return woken.Load() == int64(len(grids)) })
}
