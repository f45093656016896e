package buckets64

import (
	"fmt"
	"runtime"

	"github.com/detent-go/detent/lab/engine"
	"github.com/detent-go/detent/lab/internal/affinity"
	"github.com/detent-go/detent/lab/internal/ksleep"
)

// most is how many buckets there are at the most, however many Ps: each costs a
// thread that sleeps, and a bucket that nobody uses a scan now and then.
const most = 64

type timers struct {
	p       *affinity.Affinity
	buckets []bucket
}

// New returns the engine with a bucket for each of that many Ps, or for each of
// GOMAXPROCS if procs is 0, and 64 at the most. It returns an error where there is
// no futex(2), and if procs is negative.
func New(procs int) (engine.Core, error) {
	if err := ksleep.Available(); err != nil {
		return nil, fmt.Errorf("lab: buckets64: %w", err)
	}
	if procs < 0 {
		return nil, fmt.Errorf("lab: buckets64: %d Ps", procs)
	}
	if procs == 0 {
		procs = runtime.GOMAXPROCS(0)
	}
	n := min(procs, most)
	ts := &timers{p: affinity.New(n), buckets: make([]bucket, n)}
	for i := range ts.buckets {
		b := &ts.buckets[i]
		b.note.Calls = &b.calls
		b.ready = make(chan struct{}, 1)
	}
	return ts, nil
}

// own returns the bucket of the caller's P.
func (ts *timers) own() *bucket { return &ts.buckets[ts.p.Get()] }

func (ts *timers) Counters() engine.Counters {
	var c engine.Counters
	for i := range ts.buckets {
		b := &ts.buckets[i]
		b.mu.Lock()
		c.Pending += uint64(len(b.heap))
		c.Fired += b.fired
		c.Wakeups += b.wakeups
		b.mu.Unlock()
		c.FutexWaits += b.calls.Waits.Load()
		c.FutexWakes += b.calls.Wakes.Load()
		c.Threads += int(b.asleep.Load())
	}
	return c
}

func (ts *timers) Close() {
	for i := range ts.buckets {
		ts.buckets[i].close()
	}
}

// Info describes the engine.
func Info() engine.Info {
	return engine.Info{
		Name:    "buckets64",
		Summary: "a 4-ary heap, a lock and a goroutine asleep in a futex for each P, up to 64",
		Years:   "2018-2020",
		Go:      "1.10-1.13",
		Lacks:   engine.LacksOver(nil),
		New: func(procs int) (engine.Engine, error) {
			c, err := New(procs)
			if err != nil {
				return nil, err
			}
			return engine.Over("buckets64", c), nil
		},
	}
}
