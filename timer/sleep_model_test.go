package timer_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/detent-go/detent/internal/suite"
	"github.com/detent-go/detent/timer"
)

// sleepModel plays a script on sleeping goroutines on virtual time, in a bubble that
// tells when each has come to wait, and on a model of them.
type sleepModel struct {
	t      *testing.T
	in     []byte
	m      *timer.Manual
	closed bool
	all    []*modelSleep
}

// modelSleep is a goroutine that sleeps once.
type modelSleep struct {
	cancel   context.CancelCauseFunc // nil for a sleep without a context
	deadline time.Duration           // since dawn

	over  bool
	want  error
	wants time.Duration // when it is over, since dawn
	ended chan error    // of the sleep, when it is over
	at    time.Duration // when it was over, since dawn
}

func (w *sleepModel) byte() int {
	if len(w.in) == 0 {
		return 0
	}
	b := w.in[0]
	w.in = w.in[1:]
	return int(b)
}

func (w *sleepModel) now() time.Duration { return w.m.Now().Sub(dawn) }

func (w *sleepModel) start() {
	n := &modelSleep{ended: make(chan error, 1)}
	d := time.Duration(w.byte()-16) << (w.byte() % 32)
	n.deadline = w.now() + d
	until := w.m.Now().Add(d)
	var sleep func() error
	ctx, cancel := context.WithCancelCause(w.t.Context())
	switch w.byte() % 4 {
	case 0:
		sleep = func() error { w.m.Sleep(d); return nil }
	case 1:
		sleep = func() error { w.m.SleepUntil(until); return nil }
	case 2:
		n.cancel, sleep = cancel, func() error { return w.m.SleepContext(ctx, d) }
	default:
		n.cancel, sleep = cancel, func() error { return w.m.SleepUntilContext(ctx, until) }
	}
	if w.byte()%8 == 0 {
		cancel(errors.New("canceled before"))
		if n.cancel != nil {
			w.end(n, context.Cause(ctx))
		}
	}
	if d <= 0 {
		w.end(n, nil)
	}
	w.all = append(w.all, n)
	go func() {
		defer cancel(nil)
		err := sleep()
		n.at = w.now()
		n.ended <- err
	}()
}

func (w *sleepModel) end(n *modelSleep, err error) {
	if !n.over {
		n.over, n.want, n.wants = true, err, w.now()
	}
}

func (w *sleepModel) cancel() {
	if len(w.all) == 0 {
		return
	}
	k := w.byte() % len(w.all)
	if n := w.all[k]; n.cancel != nil {
		cause := fmt.Errorf("canceled %d", k)
		n.cancel(cause)
		w.end(n, cause)
	}
}

// advance moves the time on, often to a deadline or to just before it.
func (w *sleepModel) advance() {
	d := time.Duration(w.byte()) << (w.byte() % 32)
	if len(w.all) > 0 && w.byte()%2 == 0 {
		if left := w.all[w.byte()%len(w.all)].deadline - w.now(); left > 0 {
			d = left - time.Duration(w.byte()%2)
		}
	}
	w.m.Advance(d)
	for _, n := range w.all {
		if n.deadline <= w.now() {
			w.end(n, nil)
		}
	}
}

// check compares the sleeps that are over.
func (w *sleepModel) check() {
	synctest.Wait()
	left := w.all[:0]
	for _, n := range w.all {
		select {
		case err := <-n.ended:
			// It may come to run while the time is still moved on.
			if !n.over || err != n.want || n.at > n.wants || n.at < n.wants && (err != nil || n.at < n.deadline) {
				w.t.Fatalf("a sleep until %v ended at %v with %v; want %v at %v, over %v", n.deadline, n.at, err, n.want, n.wants, n.over)
			}
		default:
			if n.over {
				w.t.Fatalf("a sleep until %v goes on at %v; want %v at %v", n.deadline, w.now(), n.want, n.wants)
			}
			left = append(left, n)
		}
	}
	w.all = left
	if st := w.m.Stats(); !w.closed && st.Pending != uint64(len(left)) {
		w.t.Fatalf("%d timers are pending, want %d", st.Pending, len(left))
	}
}

func playSleeps(t *testing.T, script []byte) {
	synctest.Test(t, func(t *testing.T) {
		w := &sleepModel{t: t, in: script, m: newManual(t, nil)}
		defer func() {
			if !w.closed {
				w.m.Close() // No goroutine may be left, or that is what is reported.
			}
		}()
		for len(w.in) > 0 {
			switch op := w.byte() % 8; {
			case op < 4 && len(w.all) < 100:
				w.start()
			case op < 6:
				w.cancel()
			default:
				w.advance()
			}
			w.check()
		}
		for _, n := range w.all {
			if w.end(n, timer.ErrClosed); n.cancel == nil {
				n.want = nil
			}
		}
		if err := w.m.Close(); err != nil {
			t.Error(err)
		}
		w.closed = true
		w.check()
	})
}

func TestSleepModel(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range suite.Scale(500) {
		script := make([]byte, 10+rng.IntN(400))
		for k := range script {
			script[k] = byte(rng.Uint32())
		}
		playSleeps(t, script)
	}
}

func FuzzSleep(f *testing.F) {
	f.Add([]byte("for as long as the context is not done"))
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) > 1000 {
			t.Skip("long scripts are the random test's")
		}
		playSleeps(t, script)
	})
}
