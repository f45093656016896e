package suite

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
	"weak"
)

// The flaws, each put into an engine that has none.

// setDurations replaces the duration of everything.
func setDurations(e *Engine, f func(d time.Duration) time.Duration) {
	good := *e
	wrap := func(t Timer) Timer {
		return altered{t, Timer.Stop, func(t Timer, d time.Duration) bool { return t.Reset(f(d)) }}
	}
	e.NewTimer = func(d time.Duration) Timer { return wrap(good.NewTimer(f(d))) }
	e.AfterFunc = func(d time.Duration, fn func()) Timer { return wrap(good.AfterFunc(f(d), fn)) }
	e.After = func(d time.Duration) <-chan time.Time { return good.After(f(d)) }
	e.Sleep = func(d time.Duration) { good.Sleep(f(d)) }
	e.NewTicker = func(d time.Duration) Ticker { return alteredTicker{good.NewTicker(max(1, f(d))), f} }
}

// altered is a timer whose methods are others.
type altered struct {
	Timer
	stop  func(Timer) bool
	reset func(Timer, time.Duration) bool
}

func (t altered) Stop() bool                 { return t.stop(t.Timer) }
func (t altered) Reset(d time.Duration) bool { return t.reset(t.Timer, d) }

type alteredTicker struct {
	Ticker
	f func(d time.Duration) time.Duration
}

func (t alteredTicker) Reset(d time.Duration) { t.Ticker.Reset(max(1, t.f(d))) }

// alter gives all timers other methods; nil leaves one as it is.
func alter(e *Engine, stop func(Timer) bool, reset func(Timer, time.Duration) bool) {
	good := *e
	if stop == nil {
		stop = Timer.Stop
	}
	if reset == nil {
		reset = Timer.Reset
	}
	e.NewTimer = func(d time.Duration) Timer { return altered{good.NewTimer(d), stop, reset} }
	e.AfterFunc = func(d time.Duration, f func()) Timer { return altered{good.AfterFunc(d, f), stop, reset} }
}

// Rounding down to a tick fires early.
func early(e *Engine) {
	setDurations(e, func(d time.Duration) time.Duration {
		if d < math.MaxInt64/4 && d > 2*time.Millisecond {
			d -= 2 * time.Millisecond
		}
		return d
	})
}

func zeroWaits(e *Engine) {
	setDurations(e, func(d time.Duration) time.Duration {
		if d <= 0 {
			return time.Hour
		}
		return d
	})
}

func overflows(e *Engine) {
	setDurations(e, func(d time.Duration) time.Duration {
		if d > 1<<60 {
			return 0
		}
		return d
	})
}

// One in 29 is lost.
func loses(e *Engine) {
	var n atomic.Int64
	setDurations(e, func(d time.Duration) time.Duration {
		if n.Add(1)%29 == 0 {
			return time.Hour
		}
		return d
	})
}

// What is started while something is pending waits for that at least.
func oversleeps(e *Engine) {
	var next atomic.Int64
	setDurations(e, func(d time.Duration) time.Duration {
		now := time.Now().UnixNano()
		if at := next.Load(); at > now+int64(d) {
			return time.Duration(at - now)
		}
		next.Store(now + int64(d))
		return d
	})
}

func stopSays(says bool) func(e *Engine) {
	return func(e *Engine) { alter(e, func(t Timer) bool { t.Stop(); return says }, nil) }
}

func stopsNothing(e *Engine) { alter(e, func(Timer) bool { return true }, nil) }

func resetSays(says bool) func(e *Engine) {
	return func(e *Engine) {
		alter(e, nil, func(t Timer, d time.Duration) bool { t.Reset(d); return says })
	}
}

func resetsNothing(e *Engine) { alter(e, nil, func(Timer, time.Duration) bool { return true }) }

func deadlocksInSlot(e *Engine) {
	var mu sync.Mutex
	last := make(map[Timer]time.Duration)
	alter(e, nil, func(t Timer, d time.Duration) bool {
		mu.Lock()
		if last[t] == d {
			select {}
		}
		last[t] = d
		mu.Unlock()
		return t.Reset(d)
	})
}

// Channel timers as one would write them over functions alone: nothing takes
// back what has been sent.
func leavesValues(e *Engine) {
	good := *e
	e.NewTimer = func(d time.Duration) Timer { return good.timerKinds()["func"](d) }
	delete(e.Lacks, SyncChannels)
}

func sendsStart(e *Engine) {
	good := *e
	e.NewTimer = func(d time.Duration) Timer {
		c, start := make(chan time.Time, 1), time.Now()
		return funcTimer{good.AfterFunc(d, func() { c <- start }), c}
	}
}

// The channel goes with the timer, though it may be all that is left.
func forgetsChannels(e *Engine) {
	good := *e
	type holder struct{ c chan time.Time }
	e.NewTimer = func(d time.Duration) Timer {
		h := &holder{make(chan time.Time, 1)}
		w := weak.Make(h)
		tm := good.AfterFunc(d, func() {
			if h := w.Value(); h != nil {
				h.c <- time.Now()
			}
		})
		return funcTimer{tm, h.c}
	}
}

// homeTicker is a ticker made of functions.
type homeTicker struct {
	good   Engine
	c      chan time.Time
	mu     sync.Mutex
	tm     Timer
	period time.Duration
	next   time.Time
	leaves bool // Stop and Reset leave a tick behind
	drifts bool // the next tick is planned from when the last one came
}

func (t *homeTicker) C() <-chan time.Time { return t.c }

func (t *homeTicker) tick() {
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case t.c <- time.Now():
	default:
	}
	t.next = t.next.Add(t.period)
	if t.drifts {
		t.next = time.Now().Add(t.period)
	}
	t.tm.Reset(time.Until(t.next))
}

func (t *homeTicker) Stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tm.Stop()
	if !t.leaves {
		for len(t.c) > 0 {
			<-t.c
		}
	}
}

func (t *homeTicker) Reset(d time.Duration) {
	t.Stop()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.period, t.next = d, time.Now().Add(d)
	t.tm.Reset(d)
}

func homeTickers(e *Engine, flaw func(t *homeTicker)) {
	good := *e
	e.NewTicker = func(d time.Duration) Ticker {
		t := &homeTicker{good: good, c: make(chan time.Time, 1), period: d}
		flaw(t)
		t.mu.Lock()
		defer t.mu.Unlock()
		t.next = time.Now().Add(d)
		t.tm = good.AfterFunc(d, t.tick)
		return t
	}
}

func drifts(e *Engine)      { homeTickers(e, func(t *homeTicker) { t.drifts = true }) }
func leavesTicks(e *Engine) { homeTickers(e, func(t *homeTicker) { t.leaves = true }) }
func queuesTicks(e *Engine) { homeTickers(e, func(t *homeTicker) { t.c = make(chan time.Time, 100) }) }

// keepsTickers counts what is never given back.
func keepsTickers(e *Engine) {
	good := *e
	var n atomic.Uint64
	e.NewTicker = func(d time.Duration) Ticker { n.Add(1); return good.NewTicker(d) }
	e.Pending = n.Load
	delete(e.Lacks, Counted)
	delete(e.Lacks, Dropped)
}

// callsInTurn calls all functions in one goroutine, which a function may end.
func callsInTurn(e *Engine) {
	good := *e
	due := make(chan func(), 1<<16)
	go func() {
		for f := range due {
			f()
		}
	}()
	e.AfterFunc = func(d time.Duration, f func()) Timer {
		return good.AfterFunc(d, func() { due <- f })
	}
}

func leavesGoroutines(e *Engine) {
	for range 100 {
		go func() { select {} }()
	}
}
