package shard

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/detent-go/detent/internal/rt"
)

// The tests here run on the real clock. They wait as long as it takes, up to
// patience, which is only there to end a run that has failed.
const patience = 60 * time.Second

// target is a function as a Target.
type target func(s *Shard, h Handle)

func (f target) Fire(s *Shard, h Handle) { f(s, h) }

// newReal returns a group on the real clock, closed at the end of the test; by
// then no goroutine of it may be left.
func newReal(t *testing.T, c Config) *Group {
	if runtime.GOOS == "js" {
		// Once all goroutines have waited, the runtime has one more for the
		// events that wake them.
		time.Sleep(time.Millisecond)
	}
	before := runtime.NumGoroutine()
	g := NewGroup(c)
	t.Cleanup(func() {
		g.Close()
		eventually(t, "the group's goroutines to end", func() bool { return runtime.NumGoroutine() <= before })
	})
	return g
}

// eventually waits for a condition.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for limit := time.Now().Add(patience); !cond(); time.Sleep(100 * time.Microsecond) {
		if time.Now().After(limit) {
			stacks := make([]byte, 1<<20)
			t.Fatalf("waited in vain for %s\n%s", what, stacks[:runtime.Stack(stacks, true)])
		}
	}
}

// start starts a timer of the given kind that is due in d, on a shard of the
// group.
func start(t testing.TB, g *Group, k Kind, grid uint8, d time.Duration, f target) (*Shard, Handle) {
	t.Helper()
	now, _ := g.Now()
	s, h, ok := g.Start(&Timer{Deadline: now + int64(d), Grid: grid, Kind: k, Target: f, Period: int64(d)}, now)
	if !ok {
		t.Fatal("Start on a closed group")
	}
	return s, h
}

// grids are one of each sort: exact, with slack in the heap, and in the wheel
// with the timerfd and without.
var grids = map[string]uint8{"exact": Exact, "heap": Grid(10_000), "wheel": Grid(tick), "coarse": Grid(8 * tick << urgentGrid)}

// TestNeverEarly fires timers of every kind and grid, and compares the time with
// the deadline.
func TestNeverEarly(t *testing.T) {
	for _, inline := range []bool{false, true} {
		g := newReal(t, Config{Inline: inline})
		var fired atomic.Int64
		n := 0
		for range 60 {
			for _, grid := range grids {
				for _, k := range []Kind{Call, Send, Sleep} {
					d := time.Duration(n*7919%4_000_000) * time.Nanosecond
					now, _ := rt.Now()
					deadline := now + int64(d)
					st := &Timer{Deadline: deadline, Grid: grid, Kind: k, Target: target(func(*Shard, Handle) {
						if at, _ := rt.Now(); at < deadline {
							t.Errorf("kind %d, grid %d: fired %d ns early", k, grid, deadline-at)
						}
						fired.Add(1)
					})}
					if _, _, ok := g.Start(st, now); !ok {
						t.Fatal("Start on a closed group")
					}
					n++
				}
			}
		}
		eventually(t, "all timers", func() bool { return fired.Load() >= int64(n) })
		time.Sleep(5 * time.Millisecond)
		if got := fired.Load(); got != int64(n) {
			t.Errorf("%d timers fired %d times", n, got)
		}
		st := g.Stats()
		if st.Started != uint64(n) || st.Fired != uint64(n) || st.Pending != 0 || st.Lateness.Count != uint64(n) {
			t.Errorf("Started %d, Fired %d, Pending %d, Lateness of %d; want %d, %d, 0, %d",
				st.Started, st.Fired, st.Pending, st.Lateness.Count, n, n, n)
		}
	}
}
