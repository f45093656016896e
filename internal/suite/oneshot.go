package suite

import (
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// tick is the grain of detent's wheel. The suite only uses it to choose
// durations on and beside the borders of slots and levels.
const tick = time.Duration(1 << 19)

// durations are those at which an engine changes its ways: none, shorter than
// any grain, the borders of ticks, milliseconds and the wheel's first level.
var durations = []time.Duration{
	0, 1, time.Microsecond, 50 * time.Microsecond, 100 * time.Microsecond, 500 * time.Microsecond,
	tick - 1, tick, tick + 1, time.Millisecond, 2*tick - 1, 2 * tick, 2*tick + 1,
	1999 * time.Microsecond, 3 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond,
	63 * tick, 64*tick - 1, 64 * tick, 64*tick + 1, 65 * tick, 100 * time.Millisecond,
}

func testNeverEarly(t *testing.T, e Engine) {
	n := Scale(50)
	var wg sync.WaitGroup
	all := newShots(4 * n * len(durations))
	channels := make([]chan struct{}, 0, n)
	i := 0
	for range n {
		gate := make(chan struct{})
		channels = append(channels, gate)
		for _, d := range durations {
			func1, chan1, after1, sleep1 := i, i+1, i+2, i+3
			i += 4
			start := time.Now()
			e.AfterFunc(d, func() { all.fire(func1, start, d) })
			wg.Go(func() {
				<-gate
				start := time.Now()
				tm := e.NewTimer(d)
				v := <-tm.C()
				all.fire(chan1, start, d)
				if v.Sub(start) < d {
					t.Errorf("NewTimer(%v): value %v before its time", d, d-v.Sub(start))
				}
			})
			wg.Go(func() {
				<-gate
				start := time.Now()
				<-e.After(d)
				all.fire(after1, start, d)
			})
			wg.Go(func() {
				<-gate
				start := time.Now()
				e.Sleep(d)
				all.fire(sleep1, start, d)
			})
		}
	}
	// The rounds start at different phases of a tick.
	for _, gate := range channels {
		close(gate)
		time.Sleep(time.Duration(rand.IntN(700)) * time.Microsecond)
	}
	wait(t, "every timer of every kind fired", &wg)
	all.checkOnce(t)
	all.logLateness(t, "0..100ms")
}

// Some wheels fire up to 27 ms early once the machine is busy, because they
// count their ticks instead of reading a clock.
func testNeverEarlyUnderLoad(t *testing.T, e Engine) {
	if OneThread {
		t.Skip("a load would stop the world")
	}
	var stop atomic.Bool
	var load sync.WaitGroup
	for range 2 * runtime.GOMAXPROCS(0) {
		load.Go(func() {
			for x := uint64(1); !stop.Load(); {
				for range 1000 {
					x = x*6364136223846793005 + 1
				}
				if x == 0 {
					runtime.Gosched()
				}
			}
		})
	}
	n := Scale(3000)
	all := newShots(n)
	for i := range n {
		d := time.Duration(rand.Int64N(int64(100 * time.Millisecond)))
		start := time.Now()
		e.AfterFunc(d, func() { all.fire(i, start, d) })
	}
	time.Sleep(100 * time.Millisecond)
	stop.Store(true)
	load.Wait()
	all.checkOnce(t)
	all.logLateness(t, "two spinning goroutines a P")
}

func testZeroAndNegative(t *testing.T, e Engine) {
	ds := []time.Duration{0, -1, -time.Millisecond, -time.Hour, math.MinInt64, math.MinInt64 + 1}
	n := Scale(500)
	all := newShots(n * len(ds))
	for i := range all.fired {
		d, start := ds[i%len(ds)], time.Now()
		e.AfterFunc(d, func() { all.fire(i, start, d) })
	}
	for _, d := range ds {
		Await(t, "NewTimer of nothing fired", e.NewTimer(d).C())
		Await(t, "After of nothing fired", e.After(d))
		done := make(chan struct{})
		go func() { e.Sleep(d); close(done) }()
		Await(t, "Sleep of nothing returned", done)
		for kind, newTimer := range e.timerKinds() {
			tm := newTimer(time.Hour)
			if !tm.Reset(d) {
				t.Errorf("%s: Reset(%v) of a pending timer = false", kind, d)
			}
			Await(t, "Reset to nothing fired", tm.C())
		}
	}
	all.checkOnce(t)
	all.logLateness(t, "d <= 0")
}

// huge are durations that overflow a deadline when they are added to now, or
// come near to it, or leave the range of a wheel.
var huge = []time.Duration{
	math.MaxInt64, math.MaxInt64 - 1, math.MaxInt64 - time.Hour, 1 << 62, 100 * 365 * 24 * time.Hour,
	tick << 30, tick<<36 - 1, tick << 36, tick<<36 + 1, tick << 42,
}

func testHuge(t *testing.T, e Engine) {
	together(t, "what was not huge fired", len(huge), func(t testing.TB, i int) {
		d := huge[i]
		f := e.AfterFunc(d, func() { t.Errorf("AfterFunc(%v) fired", d) })
		c := e.NewTimer(d)
		short := newShots(3)
		for i := range short.fired {
			start, d := time.Now(), time.Duration(i)*time.Millisecond
			e.AfterFunc(d, func() { short.fire(i, start, d) })
		}
		short.checkOnce(t)

		for kind, newTimer := range e.timerKinds() {
			tm := newTimer(d)
			start := time.Now()
			if !tm.Reset(2 * time.Millisecond) {
				t.Errorf("%s: Reset of a timer of %v = false", kind, d)
			}
			fires(t, "a huge timer that was reset to a short time", tm, start, 2*time.Millisecond)
			if tm.Reset(d) {
				t.Errorf("%s: Reset of a fired timer = true", kind)
			}
			time.Sleep(3 * time.Millisecond)
			empty(t, kind+" reset to a huge duration", tm.C())
			if !tm.Stop() {
				t.Errorf("%s: Stop of a timer reset to %v = false", kind, d)
			}
		}
		empty(t, "NewTimer of a huge duration", c.C())
		if !f.Stop() || !c.Stop() {
			t.Errorf("Stop of a timer of %v = false", d)
		}
	})
}

// Each timer started is due before all that are pending, so the engine must
// wake earlier than it had planned, again and again.
func testEarlierDeadlineWins(t *testing.T, e Engine) {
	far := e.AfterFunc(time.Hour, func() { t.Error("fired after an hour?") })
	defer far.Stop()
	n := Scale(200)
	all := newShots(n)
	for i := range n {
		d, start := time.Duration(n-i)*500*time.Microsecond, time.Now()
		e.AfterFunc(d, func() { all.fire(i, start, d) })
	}
	all.checkOnce(t)
	// And one at a time, with nothing else to wake the engine.
	alone := newShots(Scale(30))
	for i := range alone.fired {
		d, start := time.Duration(rand.IntN(2000))*time.Microsecond, time.Now()
		done := make(chan struct{})
		e.AfterFunc(d, func() { alone.fire(i, start, d); close(done) })
		Await(t, "a lone timer fired", done)
	}
	alone.checkOnce(t)
	alone.logLateness(t, "one at a time, 0..2ms")
}

func testManyStarters(t *testing.T, e Engine) {
	starters, each := 64, e.size(10000)/5
	all := newShots(starters * each)
	var wg sync.WaitGroup
	for g := range starters {
		wg.Go(func() {
			for i := range each {
				d, start := time.Duration(rand.Int64N(int64(5*time.Millisecond))), time.Now()
				e.AfterFunc(d, func() { all.fire(g*each+i, start, d) })
				if i%100 == 0 {
					runtime.Gosched()
				}
			}
		})
	}
	wait(t, "all timers started", &wg)
	all.checkOnce(t)
	all.logLateness(t, "64 goroutines start timers of 0..5ms")
}

// What nobody can stop any more must still fire, whatever the collector does
// to the timer: only its function or its channel is left.
func testSurvivesCollection(t *testing.T, e Engine) {
	const n, d = 20, 20 * time.Millisecond
	all := newShots(n)
	start := time.Now()
	for i := range n {
		e.AfterFunc(d, func() { all.fire(i, start, d) })
	}
	var channels []<-chan time.Time
	for range n {
		channels = append(channels, e.NewTimer(d).C(), e.After(d))
	}
	tick, ticker := e.Tick(5*time.Millisecond), newTickerChan(e, 5*time.Millisecond)
	for range 5 {
		runtime.GC()
	}
	for _, c := range channels {
		Await(t, "a timer of which only the channel is left fired", c)
	}
	all.checkOnce(t)
	for range 3 {
		runtime.GC()
		Await(t, "a tick of Tick came", tick)
		Await(t, "a tick of a ticker came of which only the channel is left", ticker)
	}
}

//go:noinline
func newTickerChan(e Engine, d time.Duration) <-chan time.Time { return e.NewTicker(d).C() }

// long are timers that run beside all other tests of an engine: they cross
// the border of the wheel's second level, which lies above two seconds.
type long struct {
	all *shots
}

func startLong(e Engine) *long {
	l := &long{}
	if testing.Short() {
		return l
	}
	var ds []time.Duration
	for _, base := range []time.Duration{64 * tick, 2 * 64 * tick, 64 * 64 * tick} {
		for off := -3 * tick; off <= 3*tick; off += tick / 2 {
			ds = append(ds, base+off-1, base+off, base+off+1)
		}
	}
	l.all = newShots(len(ds))
	for i, d := range ds {
		start := time.Now()
		e.AfterFunc(d, func() { l.all.fire(i, start, d) })
	}
	return l
}

func (l *long) check(t *testing.T) {
	if l.all == nil {
		t.Skip("takes more than two seconds")
	}
	l.all.checkOnce(t)
}
