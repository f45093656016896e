package timer_test

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/detent-go/detent/timer"
)

// manualModel plays a script on a Manual and in a model of it: a list of what is
// pending.
type manualModel struct {
	t     testing.TB
	in    []byte
	m     *timer.Manual
	view  *timer.Service // of m, with the slack
	slack time.Duration
	all   []*modelTimer

	inside int // callbacks that are running
	fired  int
}

// modelTimer is a timer of the model.
type modelTimer struct {
	tm      *timer.Timer
	tk      *timer.Ticker
	period  time.Duration // of a ticker
	pending bool
	// Since dawn, while pending: when it may fire at the earliest, and when it is
	// due for sure, which differ for a tick that may have been dropped.
	due, sure time.Duration
}

// start notes that r is pending.
func (r *modelTimer) start(due time.Duration) { r.pending, r.due, r.sure = true, due, due }

func (w *manualModel) byte() int {
	if len(w.in) == 0 {
		return 0
	}
	b := w.in[0]
	w.in = w.in[1:]
	return int(b)
}

func (w *manualModel) now() time.Duration { return w.m.Now().Sub(dawn) }

// duration takes one of any magnitude from the script, up to some days.
func (w *manualModel) duration() time.Duration {
	d := time.Duration(w.byte())<<8 | time.Duration(w.byte())
	return d<<(w.byte()%33) - time.Duration(w.byte()%3)
}

func (w *manualModel) pick() *modelTimer {
	if len(w.all) == 0 {
		return nil
	}
	return w.all[(w.byte()<<8|w.byte())%len(w.all)]
}

// fire is what a callback does: it compares, and then plays a little.
func (w *manualModel) fire(r *modelTimer) {
	now := w.now()
	if !r.pending || now < r.due || now > r.due+w.slack {
		w.t.Fatalf("called at %v, pending %v, due %v, slack %v", now, r.pending, r.due, w.slack)
	}
	r.pending = false
	w.fired++
	w.inside++
	if w.inside == 1 {
		for range w.byte() % 4 {
			w.op()
		}
	}
	w.inside--
}

func (w *manualModel) start() {
	if len(w.all) > 300 {
		return
	}
	d := w.duration()
	r := new(modelTimer)
	r.start(w.now() + max(d, 0))
	switch w.byte() % 3 {
	case 0:
		r.tm = w.view.AfterFunc(d, func() { w.fire(r) })
	case 1:
		r.tm = w.view.NewTimer(d)
	case 2:
		r.period = max(d, time.Hour)
		r.start(w.now() + r.period)
		r.tk = w.view.NewTicker(r.period)
	}
	w.all = append(w.all, r)
}

// settle brings the model up to the present: what must have fired has, and what a
// channel holds is what was sent first.
func (w *manualModel) settle(r *modelTimer) {
	if r.tm != nil && r.tm.C == nil {
		if r.pending && w.inside == 0 && r.due+w.slack < w.now() {
			w.t.Fatalf("not called at %v, due %v, slack %v", w.now(), r.due, w.slack)
		}
		return
	}
	if !r.pending {
		return
	}
	switch got := received(w.channel(r)); {
	case got < 0 && r.sure+w.slack < w.now():
		w.t.Fatalf("nothing sent at %v, due %v, slack %v", w.now(), r.sure, w.slack)
	case got < 0:
		return
	case got < r.due || got > r.sure+w.slack || got > w.now():
		w.t.Fatalf("%v was sent, due %v to %v, slack %v, at %v", got, r.due, r.sure, w.slack, w.now())
	}
	w.fired++
	if r.pending = r.tk != nil; r.pending {
		// The receive has made room; ticks in between have been dropped, up to the
		// last one but for its slack.
		for r.due += r.period; r.due+w.slack < w.now(); {
			r.due += r.period
		}
		for r.sure = r.due; r.sure <= w.now(); {
			r.sure += r.period
		}
	}
}

func (w *manualModel) channel(r *modelTimer) <-chan time.Time {
	if r.tk != nil {
		return r.tk.C
	}
	return r.tm.C
}

func (w *manualModel) stop(r *modelTimer) {
	if r.tk != nil {
		r.tk.Stop()
		r.pending = false
		return
	}
	// With slack it is not known whether a timer that is due has fired; its
	// result tells, and a callback would have told before.
	sure := !r.pending || r.tm.C == nil || w.now() < r.due
	want := r.pending
	if got := r.tm.Stop(); sure && got != want {
		w.t.Fatalf("Stop = %v, want %v", got, want)
	} else if !sure && !got {
		w.t.Fatalf("Stop = false before the value was received")
	}
	r.pending = false
}

func (w *manualModel) reset(r *modelTimer) {
	d := w.duration()
	if r.tk != nil {
		r.period = max(d, time.Hour)
		r.tk.Reset(r.period)
		r.start(w.now() + r.period)
		return
	}
	if got := r.tm.Reset(d); got != r.pending {
		w.t.Fatalf("Reset = %v, want %v", got, r.pending)
	}
	r.start(w.now() + max(d, 0))
}

func (w *manualModel) op() {
	switch op := w.byte() % 16; {
	case op < 6:
		w.start()
	case op < 9:
		if r := w.pick(); r != nil {
			w.settle(r)
			w.stop(r)
		}
	case op < 13:
		if r := w.pick(); r != nil {
			w.settle(r)
			w.reset(r)
		}
	case w.inside > 0:
		w.m.Advance(0)
	case op < 15:
		w.m.Advance(max(w.duration(), 0))
		w.check()
	default:
		w.next()
	}
}

// next steps to Next, before which nothing fires.
func (w *manualModel) next() {
	w.check() // of what fired when it was started
	at, ok := w.m.Next()
	if !ok {
		for _, r := range w.all {
			if w.settle(r); r.pending {
				w.t.Fatalf("Next says that nothing is pending")
			}
		}
		return
	}
	fired := w.fired
	if at.Sub(dawn) > w.now() {
		w.m.AdvanceTo(at.Add(-1))
		w.check()
		if w.fired != fired && w.slack == 0 {
			w.t.Fatalf("%d fired before Next, %v", w.fired-fired, at.Sub(dawn))
		}
	}
	w.m.AdvanceTo(at)
	w.check()
}

func (w *manualModel) check() {
	for _, r := range w.all {
		w.settle(r)
	}
}

// playManual plays a script.
func playManual(t testing.TB, data []byte) {
	w := &manualModel{t: t, in: data}
	shards := 1 + w.byte()%3
	w.slack = []time.Duration{0, 0, 40 * time.Microsecond, 3 * time.Second}[w.byte()%4]
	w.m = newManual(t, &timer.Options{Shards: shards})
	w.view = w.m.WithSlack(w.slack)
	for len(w.in) > 0 {
		w.op()
	}
	for _, r := range w.all {
		if w.settle(r); r.tk != nil {
			w.stop(r)
		}
	}
	w.m.Advance(1000 * 24 * time.Hour)
	for _, r := range w.all {
		if w.settle(r); r.pending {
			t.Fatalf("never fired, due %v", r.due)
		}
	}
	if st := w.m.Stats(); st.Pending != 0 {
		t.Errorf("%d pending at the end", st.Pending)
	}
	if err := w.m.Close(); err != nil {
		t.Error(err)
	}
}

func TestManualModel(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if v := os.Getenv("DETENT_SEED"); v != "" {
		var err error
		if seed, err = strconv.ParseUint(v, 10, 64); err != nil {
			t.Fatalf("DETENT_SEED: %v", err)
		}
	}
	t.Logf("to repeat: DETENT_SEED=%d", seed)
	for k := range 600 {
		rng := rand.New(rand.NewPCG(seed, uint64(k)))
		data := make([]byte, 1<<(5+k%8))
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		playManual(t, data)
	}
}

func FuzzManual(f *testing.F) {
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 4096 {
			t.Skip("long scripts are the random test's")
		}
		playManual(t, data)
	})
}
