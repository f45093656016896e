package bench

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/detent-go/detent/cmd/internal/machine"
)

const (
	opArm     = "arm"     // start the timers of all windows
	opWait    = "wait"    // until all of them have fired
	opCollect = "collect" // the figures of one window
)

// notFired is the lateness of a timer that has not.
const notFired = math.MinInt64

// A burst is one or more windows, in each of which many timers become due.
//
// Ground rules: arm writes everything before the timer that reads it is
// started, a shot belongs to its callback until the window's done is closed,
// and then to the serving goroutine again.
type burst[T handle] struct {
	timers  []T
	windows []*burstWindow
	arming  machine.Usage // before the first timer was started
	armed   machine.Usage // when all were
}

type burstWindow struct {
	shots      []shot
	seconds    float64 // its length
	goroutines int     // before the burst
	left       atomic.Int64
	most       atomic.Int64  // goroutines seen
	done       chan struct{} // closed by the last to fire, after end
	end        machine.Usage
}

// A shot is one timer of a burst.
type shot struct {
	w        *burstWindow
	deadline int64
	late     int64
}

// fire is the callback. It does what the measurement needs and no more: one
// reading of the clock, one atomic subtraction.
func (s *shot) fire() {
	s.late = now() - s.deadline
	w := s.w
	left := w.left.Add(-1)
	if left%512 == 0 {
		storeMax(&w.most, int64(runtime.NumGoroutine()))
	}
	if left == 0 {
		w.end = machine.ReadUsage()
		close(w.done)
	}
}

func storeMax(a *atomic.Int64, v int64) {
	for {
		old := a.Load()
		if v <= old || a.CompareAndSwap(old, v) {
			return
		}
	}
}

// arm starts req.N timers for each of req.K windows of length req.Window, the
// first of them req.Lead from now and the next always req.Period later. Inside
// a window the deadlines lie evenly and are started in a random order.
func (h *host[T]) arm(req request) (values, error) {
	if h.burst != nil {
		return nil, errors.New("a burst is armed already")
	}
	if req.N <= 0 || req.K <= 0 || req.Window <= 0 {
		return nil, fmt.Errorf("a burst of %d timers in %d windows of %v", req.N, req.K, req.Window)
	}
	base := now() + int64(req.Lead)
	h.warm()
	b := &burst[T]{timers: make([]T, req.N*req.K)}
	fire := make([]func(), 0, req.N*req.K)
	for range req.K {
		w := &burstWindow{
			shots:      make([]shot, req.N),
			seconds:    req.Window.Seconds(),
			goroutines: runtime.NumGoroutine(),
			done:       make(chan struct{}),
		}
		w.left.Store(int64(req.N))
		for i := range w.shots {
			w.shots[i].late = notFired
			fire = append(fire, w.shots[i].fire)
		}
		b.windows = append(b.windows, w)
	}
	runtime.GC() // the garbage of the set-up is not the burst's
	b.arming = machine.ReadUsage()
	step := stride(req.N)
	for k, w := range b.windows {
		begin := base + int64(k)*int64(req.Period)
		i := 0
		for range w.shots {
			s := &w.shots[i]
			s.w = w
			s.deadline = begin + int64(req.Window)*int64(i)/int64(req.N)
			// The engine reads the clock after this, so the deadline that it
			// computes is this one or later: nothing early is let pass.
			b.timers[k*req.N+i] = h.engine.AfterFunc(time.Duration(s.deadline-now()), fire[k*req.N+i])
			if i += step; i >= req.N {
				i -= req.N
			}
		}
	}
	b.armed = machine.ReadUsage()
	h.burst = b
	return values{"lead_left_s": time.Duration(base - now()).Seconds()}, nil
}

// wait blocks until the timers of all windows have fired.
func (h *host[T]) wait() (values, error) {
	if h.burst == nil {
		return nil, errors.New("no burst is armed")
	}
	for _, w := range h.burst.windows {
		<-w.done
	}
	return nil, nil
}

// collect returns the figures of window req.K, the first being 0.
func (h *host[T]) collect(req request) (values, error) {
	b := h.burst
	if b == nil || req.K < 0 || req.K >= len(b.windows) {
		return nil, fmt.Errorf("no window %d", req.K)
	}
	w := b.windows[req.K]
	select {
	case <-w.done:
	default:
		return nil, errors.New("the window has not ended")
	}
	from := b.armed
	if req.K > 0 {
		from = b.windows[req.K-1].end
	}
	late := make([]int64, len(w.shots))
	early, lost, last := 0, 0, int64(0)
	for i, s := range w.shots {
		switch {
		case s.late == notFired:
			lost++
		case s.late < 0:
			early++
		}
		late[i] = s.late
		last = max(last, s.deadline+s.late)
	}
	if lost > 0 {
		return nil, fmt.Errorf("%d timers fired twice and as many not at all", lost)
	}
	v := values{
		"goroutines_more": float64(w.most.Load() - int64(w.goroutines)),
		"early":           float64(early),
		"overrun_s":       time.Duration(last - w.shots[len(w.shots)-1].deadline).Seconds(),
	}
	v.addCPU("firing_cpu_s", from, w.end, time.Duration.Seconds)
	v.addCPU("cpu_ms_per_s", from, w.end, func(d time.Duration) float64 { return millis(d) / w.seconds })
	v.addCPU("cpu_s", b.arming, b.armed, func(arming time.Duration) float64 {
		return arming.Seconds()/float64(len(b.windows)) + v["firing_cpu_s"]
	})
	v.lateness(late)
	return v, nil
}
