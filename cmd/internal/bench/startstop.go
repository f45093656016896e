package bench

import (
	"fmt"
	"runtime"
	"time"
)

const opStartStop = "startstop"

// The patterns of start and stop.
const (
	patternNow  = "now"  // each timer is stopped at once
	patternRing = "ring" // each start stops the timer that was started ringSize before
)

const ringSize = 1000

// startStop times AfterFunc and Stop in the pattern req.Mode for req.Window.
func (h *host[T]) startStop(req request) (values, error) {
	var loop func(window time.Duration) (ops, ns int64)
	switch req.Mode {
	case patternNow:
		loop = h.loopNow
	case patternRing:
		ring := make([]T, ringSize)
		for i := range ring {
			ring[i] = h.engine.AfterFunc(spans[i%len(spans)], nop)
		}
		defer stopAll(ring)
		loop = func(window time.Duration) (int64, int64) { return h.loopRing(ring, window) }
	default:
		return nil, fmt.Errorf("unknown pattern %q", req.Mode)
	}
	loop(req.Window / 5) // reach the steady state
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	ops, ns := loop(req.Window)
	runtime.ReadMemStats(&after)
	n := float64(ops)
	return values{
		"op_ns":     float64(ns) / n,
		"op_bytes":  float64(after.TotalAlloc-before.TotalAlloc) / n,
		"op_allocs": float64(after.Mallocs-before.Mallocs) / n,
	}, nil
}

func (h *host[T]) loopNow(window time.Duration) (ops, ns int64) {
	begin := now()
	for {
		for i := range ringSize {
			h.engine.AfterFunc(spans[i], nop).Stop()
		}
		ops += ringSize
		if ns = now() - begin; ns >= int64(window) {
			return ops, ns
		}
	}
}

func (h *host[T]) loopRing(ring []T, window time.Duration) (ops, ns int64) {
	begin := now()
	for {
		for i := range ring {
			ring[i].Stop()
			ring[i] = h.engine.AfterFunc(spans[i%len(spans)], nop)
		}
		ops += int64(len(ring))
		if ns = now() - begin; ns >= int64(window) {
			return ops, ns
		}
	}
}

// stopAll stops what is left in timers.
func stopAll[T handle](timers []T) {
	var none T
	for _, t := range timers {
		if t != none {
			t.Stop()
		}
	}
}

var (
	specStartStop = spec{label: "one start and stop", metric: "op_ns", unit: unitNs}
	specOpBytes   = spec{label: "allocated", metric: "op_bytes", unit: unitBytes}
	specOpAllocs  = spec{label: "allocations", metric: "op_allocs", unit: unitCount, diff: true, resolution: 0.05}
	specFlat      = spec{label: "cost over that with none", metric: "over_0_pending_ratio", unit: unitRatio}
)

// playStartStop measures every pending count in every round, so that the
// growth from none to the most is a figure of one round too.
func playStartStop(s *stage) error {
	type level struct {
		pending int
		workers []*worker
	}
	var levels []level
	for _, n := range append([]int{0}, s.plan.Pending...) {
		if n > 0 && !s.roomFor(pendingCase(n), uint64(n)*bytesPerPair) {
			continue
		}
		ws, err := s.filledPair(s.procs, n)
		if err != nil {
			return err
		}
		levels = append(levels, level{n, ws})
	}
	return s.rounds(func(int) error {
		for _, pattern := range []string{patternNow, patternRing} {
			var none []float64 // by engine
			for _, l := range levels {
				name := pattern + ", " + pendingCase(l.pending)
				for i, w := range l.workers {
					v, err := w.call(request{Op: opStartStop, Mode: pattern, Window: s.plan.Window})
					if err != nil {
						return err
					}
					s.addAll(name, w.side, v, specStartStop)
					if pattern == patternRing {
						s.addAll(name, w.side, v, specOpBytes, specOpAllocs)
					}
					if l.pending == 0 {
						none = append(none, v["op_ns"])
					} else {
						s.add(name, specFlat, w.side, v["op_ns"]/none[i])
					}
				}
			}
		}
		return nil
	})
}

// bytesPerPair is more than a pending timer takes in both engines' processes
// together, garbage up to the next collection included.
const bytesPerPair = 600

func pendingCase(n int) string { return count(n) + " pending" }
