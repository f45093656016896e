package timer_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/detent-go/detent/internal/suite"
	"github.com/detent-go/detent/timer"
)

// intervalModel plays a script on an Interval on virtual time, by all of its
// methods, and on a model that counts the ticks of its schedule one by one.
type intervalModel struct {
	t  testing.TB
	in []byte
	m  *timer.Manual
	iv *timer.Interval
	o  timer.TickOptions
	f  bool // the ticks are for a function

	period  time.Duration
	next    time.Duration // the next tick's time, since dawn
	missed  int64         // ticks before it that nobody gets
	stopped bool
	told    bool // C has been called, and nothing has happened to it since
	depth   int  // of calls of the function
	taken   int
}

func (w *intervalModel) byte() int {
	if len(w.in) == 0 {
		return 0
	}
	b := w.in[0]
	w.in = w.in[1:]
	return int(b)
}

func (w *intervalModel) now() time.Duration { return w.m.Now().Sub(dawn) }

// begin is what NewInterval and Reset do.
func (w *intervalModel) begin(period time.Duration, immediately bool) {
	w.period, w.missed, w.stopped, w.told = period, 0, false, false
	w.next = w.now()
	if !immediately {
		w.next = w.after(w.now())
	}
}

// after returns the first tick of the schedule after a time that is one, or of
// the grid after any time.
func (w *intervalModel) after(at time.Duration) time.Duration {
	if !w.o.Aligned {
		return at + w.period
	}
	// Step by step from a tick of the grid before dawn.
	grid := dawn.Add(-w.o.Offset).Truncate(w.period).Add(w.o.Offset).Sub(dawn)
	for grid > at {
		grid -= w.period
	}
	grid += (at - grid) / w.period * w.period
	return grid + w.period
}

// take checks a tick that has been taken, or that none was.
func (w *intervalModel) take(got timer.Ticked, ok bool) {
	now := w.now()
	if want := !w.stopped && w.next <= now; ok != want {
		w.t.Fatalf("at %v, taken = %v; the next tick is that of %v, stopped %v", now, ok, w.next, w.stopped)
	}
	if !ok {
		return
	}
	w.taken++
	at := w.next
	if got.At.Sub(dawn) != at || got.Missed != w.missed {
		w.t.Fatalf("at %v, the tick of %v, missed %d; want %v, missed %d", now, got.At.Sub(dawn), got.Missed, at, w.missed)
	}
	w.missed = 0
	w.next = w.after(at)
	switch late := now - at; {
	case w.o.Missed == timer.Skip:
		for w.next <= now {
			w.next, w.missed = w.next+w.period, w.missed+1
		}
	case w.o.Missed == timer.Delay && late > min(w.period/8, 5*time.Millisecond):
		for n := at + w.period; n <= now; n += w.period {
			w.missed++
		}
		w.next = now + w.period
	}
}

// called is the function of TickFunc: it works for a while, and may use the
// Interval.
func (w *intervalModel) called(got timer.Ticked) {
	if w.depth++; w.depth > 1 {
		w.t.Fatal("called while it runs")
	}
	w.take(got, true)
	switch w.byte() % 6 {
	case 0:
		w.work()
	case 1:
		w.stop()
	case 2:
		w.reset()
	case 3:
		w.reset()
		w.work()
	}
	w.depth--
}

// work lets some periods pass, or a part of one.
func (w *intervalModel) work() {
	d := w.period * time.Duration(w.byte()%6)
	if w.byte()%2 == 0 {
		d += w.period / 256 * time.Duration(w.byte())
	}
	w.told = w.told && w.next > w.now()+d
	w.m.Advance(d)
}

func (w *intervalModel) stop() {
	w.stopped, w.told = true, false
	w.iv.Stop()
}

func (w *intervalModel) reset() {
	w.begin(time.Duration(1+w.byte())*time.Duration(1+w.byte()%4)*10*time.Millisecond, false)
	w.iv.Reset(w.period)
}

// select has the channel tell of the next tick, lets time pass up to just before
// it and up to it, and looks what the channel tells.
func (w *intervalModel) selects() {
	told := w.told
	c := w.iv.C()
	if w.stopped {
		if c != nil && received(c) >= 0 {
			w.t.Fatal("told of a tick while stopped")
		}
		return
	}
	if left := w.next - w.now(); left > 0 {
		w.m.Advance(left - 1)
		if got := received(c); got >= 0 && told && !w.o.Aligned { // which looks at the wall clock once a minute
			w.t.Fatalf("told at %v of a tick of %v", got, w.next)
		}
		c = w.iv.C() // It may have been told of one that has been taken.
		w.m.Advance(1)
	}
	if w.byte()%4 == 0 {
		w.told = false
		return // It stays told.
	}
	for range 2 { // The first may be a look at the wall clock.
		if received(c) >= 0 {
			w.take(w.iv.Take())
			w.told = true
			return
		}
		c = w.iv.C()
	}
	w.t.Fatalf("not told at %v of the tick of %v", w.now(), w.next)
}

// wait takes a tick that has come already, or is canceled.
func (w *intervalModel) wait() {
	ctx, cancel := context.WithCancelCause(context.Background())
	gone := errors.New("gone")
	if w.stopped || w.next > w.now() || w.byte()%4 == 0 {
		cancel(gone)
		if got, err := w.iv.Wait(ctx); err != gone || got != (timer.Ticked{}) {
			w.t.Fatalf("Wait = %v, %v", got, err)
		}
		return
	}
	got, err := w.iv.Wait(ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	w.take(got, true)
	cancel(nil)
}

func (w *intervalModel) op() {
	op := w.byte() % 16
	switch {
	case op < 5:
		w.work()
		if w.f && !w.stopped && w.next <= w.now() {
			w.t.Fatalf("not called at %v, for the tick of %v", w.now(), w.next)
		}
	case op < 6:
		w.stop()
	case op < 8:
		w.reset()
	case w.f:
		w.work()
	case op < 11:
		w.take(w.iv.Take())
	case op < 13:
		w.selects()
	default:
		w.wait()
	}
}

func playInterval(t testing.TB, script []byte) {
	w := &intervalModel{t: t, in: script, m: newManual(t, nil)}
	w.m.Advance(time.Duration(w.byte()) * time.Millisecond)
	kind := w.byte()
	w.o.Missed = []timer.MissedTicks{timer.Skip, timer.Burst, timer.Delay}[kind%3]
	w.o.Aligned = kind/3%2 == 1 && w.o.Missed != timer.Delay
	w.o.Immediately = kind/6%2 == 1
	period := []time.Duration{1, 8, 1000, 10 * time.Millisecond, 7 * time.Second, 15 * time.Second, 3 * time.Minute, time.Hour}[w.byte()%8]
	if w.o.Aligned {
		w.o.Offset = period / 128 * time.Duration(w.byte()-128)
	}
	w.begin(period, w.o.Immediately)
	if w.f = kind/12%2 == 1; w.f {
		w.iv = w.m.TickFunc(period, w.called, &w.o)
	} else {
		w.iv = w.m.NewInterval(period, &w.o)
	}
	for len(w.in) > 0 {
		w.op()
	}
	w.stop()
	w.m.Advance(1000 * time.Hour)
	if st := w.m.Stats(); st.Pending != 0 {
		t.Fatalf("%d pending after Stop", st.Pending)
	}
}

func TestIntervalModel(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range suite.Scale(3000) {
		script := make([]byte, 10+rng.IntN(200))
		for k := range script {
			script[k] = byte(rng.Uint32())
		}
		playInterval(t, script)
	}
}

func FuzzInterval(f *testing.F) {
	f.Add([]byte("each tick has the exact time of the schedule"))
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) > 1000 {
			t.Skip("long scripts are the random test's")
		}
		playInterval(t, script)
	})
}
