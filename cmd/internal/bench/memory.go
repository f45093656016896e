package bench

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/detent-go/detent/cmd/internal/machine"
)

const (
	opMemory = "memory"
	opGC     = "gc"
	opUsage  = "usage"
)

// memory returns what each of req.N pending timers takes, on Go's heap and of
// the machine's memory, once the runtime has given back what it can. The
// slice that keeps them is there before.
func (h *host[T]) memory(req request) (values, error) {
	if req.N <= 0 {
		return nil, fmt.Errorf("the memory of %d timers", req.N)
	}
	h.kept = make([]T, req.N)
	clear(h.kept) // touch every page
	h.warm()
	heap, rss, resident := memoryNow()
	h.start(h.kept)
	heapFull, rssFull, _ := memoryNow()
	n := float64(req.N)
	v := values{"heap_bytes": (heapFull - heap) / n}
	if resident {
		v["rss_bytes"] = (rssFull - rss) / n
	}
	runtime.KeepAlive(h.kept)
	return v, nil
}

// memoryNow returns the live bytes on the heap and in memory; false where the
// system does not tell the latter.
func memoryNow() (heap, rss float64, ok bool) {
	debug.FreeOSMemory() // collects first
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	r, ok := machine.ResidentBytes()
	return float64(m.HeapAlloc), float64(r), ok
}

// gc returns the time that runtime.GC takes over the kept timers less what it
// took before there were any, the median of req.N.
func (h *host[T]) gc(req request) (values, error) {
	return values{"gc_ms": max(gcMillis(max(req.N, 1))-h.empty, 0)}, nil
}

// gcMillis is the median of n collections.
func gcMillis(n int) float64 {
	ms := make([]float64, n)
	for i := range ms {
		begin := time.Now()
		runtime.GC()
		ms[i] = float64(time.Since(begin)) / 1e6
	}
	return median(ms)
}

// usage returns the counters that idle takes differences of.
func (h *host[T]) usage() (values, error) {
	u := machine.ReadUsage()
	v := values{}
	v.addCPU("cpu_ms", machine.Usage{}, u, millis)
	if u.Err == nil && u.Switches >= 0 {
		v["waits"] = float64(u.Switches)
	}
	if n, ok := h.engine.Wakeups(); ok {
		v["wakeups"] = float64(n)
	}
	return v, nil
}

var (
	specHeap    = spec{label: "heap, a timer", metric: "heap_bytes", unit: unitBytes}
	specRSS     = spec{label: "resident, a timer", metric: "rss_bytes", unit: unitBytes}
	specGC      = spec{label: "runtime.GC", metric: "gc_ms", unit: unitMs}
	specCPUMs   = spec{label: "CPU", metric: "cpu_ms", unit: unitMs, diff: true, resolution: 1}
	specWaits   = spec{label: "waits of its threads", metric: "waits", unit: unitCount, diff: true, resolution: 5}
	specWakeups = spec{label: "wakeups by detent's own count", metric: "wakeups", unit: unitCount, diff: true, against: Zero}
)

func playMemory(s *stage) error {
	name := pendingCase(s.plan.Memory)
	return s.rounds(func(int) error {
		for _, side := range engines {
			v, err := s.fresh(side, s.procs, request{Op: opMemory, N: s.plan.Memory})
			if err != nil {
				return err
			}
			s.addAll(name, side, v, specHeap, specRSS)
		}
		return nil
	})
}

func playGC(s *stage) error {
	for _, n := range s.plan.Pending {
		if !s.roomFor(pendingCase(n), uint64(n)*bytesPerPair) {
			continue
		}
		ws, err := s.filledPair(s.procs, n)
		if err != nil {
			return err
		}
		err = s.rounds(func(int) error {
			for _, w := range ws {
				v, err := w.call(request{Op: opGC, N: 3})
				if err != nil {
					return err
				}
				s.addAll(pendingCase(n), w.side, v, specGC)
			}
			return nil
		})
		if err != nil {
			return err
		}
		if err := s.closeWorkers(); err != nil {
			return err
		}
	}
	return nil
}

// playIdle lets both engines' processes idle at the same time: what they do
// not do cannot disturb the other, and the wait is half as long.
func playIdle(s *stage) error {
	ws, err := s.filledPair(s.procs, s.plan.Idle)
	if err != nil {
		return err
	}
	// The runtime has its own work to end after the set-up: sweeping, giving
	// memory back.
	if err := s.pause(s.plan.IdleWindow); err != nil {
		return err
	}
	name := fmt.Sprintf("%s, %v", pendingCase(s.plan.Idle), s.plan.IdleWindow)
	return s.rounds(func(int) error {
		before, err := callAll(ws, request{Op: opUsage})
		if err != nil {
			return err
		}
		if err := s.pause(s.plan.IdleWindow); err != nil {
			return err
		}
		after, err := callAll(ws, request{Op: opUsage})
		if err != nil {
			return err
		}
		for i, w := range ws {
			delta := values{}
			for metric, v := range after[i] {
				delta[metric] = v - before[i][metric]
			}
			s.addAll(name, w.side, delta, specCPUMs, specWaits)
			if w.side == Detent {
				s.addAll(name, w.side, delta, specWakeups)
				s.add(name, specWakeups, Zero, 0)
			}
		}
		return nil
	})
}

// callAll has the workers do req one after another.
func callAll(ws []*worker, req request) ([]values, error) {
	all := make([]values, len(ws))
	for i, w := range ws {
		v, err := w.call(req)
		if err != nil {
			return nil, err
		}
		all[i] = v
	}
	return all, nil
}
