package timer_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/detent-go/detent/internal/suite"
	"github.com/detent-go/detent/timer"
)

// ctxModel plays a script on a tree of contexts on virtual time, where deadlines
// pass to the nanosecond, and on a model of that tree.
type ctxModel struct {
	t   testing.TB
	in  []byte
	m   *timer.Manual
	all []*ctxNode
	ops []string
}

// ctxNode is a context, and what it should be.
type ctxNode struct {
	kind   string
	parent int // -1 for the root, and where the parent's end is not the context's
	ctx    context.Context
	cancel func(error)

	own      bool          // it has a timer, or would if the deadline had not passed
	deadline time.Duration // of that, since dawn
	has      bool          // a deadline, its own or a parent's
	until    time.Duration // which one
	slow     error         // the cause if the deadline passes

	err, cause error
	called     chan struct{} // closed by a function of AfterFunc; or nil
}

func (w *ctxModel) byte() int {
	if len(w.in) == 0 {
		return 0
	}
	b := w.in[0]
	w.in = w.in[1:]
	return int(b)
}

func (w *ctxModel) now() time.Duration { return w.m.Now().Sub(dawn) }

func (w *ctxModel) log(format string, args ...any) {
	w.ops = append(w.ops, fmt.Sprintf(format, args...))
}

func (w *ctxModel) fatalf(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("%s\n%q", fmt.Sprintf(format, args...), w.ops)
}

// derive adds a child of any context, live or not.
func (w *ctxModel) derive() {
	at, i := w.byte()%len(w.all), len(w.all)
	p := w.all[at]
	n := &ctxNode{parent: at, has: p.has, until: p.until}
	switch w.byte() % 8 {
	case 0, 1, 2, 3:
		w.deadline(p, n, i)
	case 4, 5:
		n.kind = "cancel"
		n.ctx, n.cancel = context.WithCancelCause(p.ctx)
	case 6:
		n.kind = "value"
		n.ctx = context.WithValue(p.ctx, twinKey(i), i)
		if w.byte()%2 == 0 {
			n.kind, n.ctx = "wrapped", wrapped{p.ctx}
		}
	default:
		n.kind = "without"
		n.ctx = context.WithoutCancel(p.ctx)
		n.parent, n.has = -1, false
	}
	if n.parent >= 0 && p.err != nil {
		n.err, n.cause = p.err, p.cause
	}
	w.log("%d: %s of %d until %v", i, n.kind, at, n.deadline)
	w.all = append(w.all, n)
	if n.err == nil && n.own && n.deadline <= w.now() {
		w.end(i, context.DeadlineExceeded, n.slow)
	}
	if w.byte()%2 == 0 {
		n.called = make(chan struct{})
		context.AfterFunc(n.ctx, func() { close(n.called) })
	}
	if w.byte()%2 == 0 {
		n.ctx.Done()
	}
}

// deadline makes n a context with a deadline, in one of the four ways.
func (w *ctxModel) deadline(p, n *ctxNode, i int) {
	// No two deadlines are the same.
	d := time.Duration(w.byte()-8)*time.Second + time.Duration(i)*time.Nanosecond
	at := w.m.Now().Add(d)
	n.slow = context.DeadlineExceeded
	cause := fmt.Errorf("%d was too slow", i)
	var cancel context.CancelFunc
	switch w.byte() % 4 {
	case 0:
		n.kind = "timeout"
		n.ctx, cancel = w.m.WithTimeout(p.ctx, d)
	case 1:
		n.kind, n.slow = "timeoutCause", cause
		n.ctx, cancel = w.m.WithTimeoutCause(p.ctx, d, cause)
	case 2:
		n.kind = "deadline"
		n.ctx, cancel = w.m.WithDeadline(p.ctx, at)
	default:
		n.kind, n.slow = "deadlineCause", cause
		n.ctx, cancel = w.m.WithDeadlineCause(p.ctx, at, cause)
	}
	n.cancel = func(error) { cancel() }
	if until := w.now() + d; !p.has || until <= p.until {
		n.own, n.deadline, n.has, n.until = true, until, true, until
	}
}

// end ends a context of the model and what is below it.
func (w *ctxModel) end(i int, err, cause error) {
	n := w.all[i]
	if n.err != nil {
		return
	}
	n.err, n.cause = err, cause
	for k, c := range w.all {
		if c.parent == i {
			w.end(k, err, cause)
		}
	}
}

func (w *ctxModel) cancel() {
	i := w.byte() % len(w.all)
	n := w.all[i]
	if n.cancel == nil {
		return
	}
	w.log("cancel %d", i)
	cause := context.Canceled
	if n.kind == "cancel" {
		cause = fmt.Errorf("%d was canceled", i)
	}
	n.cancel(cause)
	w.end(i, context.Canceled, cause)
}

// advance moves the time on, often to a deadline or to just before it.
func (w *ctxModel) advance() {
	d := time.Duration(w.byte()) * time.Second / 16
	if at := w.all[w.byte()%len(w.all)].deadline; at > w.now() && w.byte()%2 == 0 {
		d = at - w.now() - time.Duration(w.byte()%2)
	}
	w.log("advance %v", d)
	w.m.Advance(d)
	for {
		// The deadlines that have passed, in their order.
		first := -1
		for i, n := range w.all {
			if n.err == nil && n.own && n.deadline <= w.now() && (first < 0 || n.deadline < w.all[first].deadline) {
				first = i
			}
		}
		if first < 0 {
			return
		}
		w.end(first, context.DeadlineExceeded, w.all[first].slow)
	}
}

func (w *ctxModel) check() {
	pending := uint64(0)
	for i, n := range w.all {
		diff := n.diff()
		if diff != "" && !n.own {
			// Contexts of package context below one of ours may follow later.
			suite.Eventually(quiet{w.t, func() { w.fatalf("%d, a %s: %s", i, n.kind, diff) }}, "", func() bool {
				diff = n.diff()
				return diff == ""
			})
		} else if diff != "" {
			w.fatalf("%d, a %s, at %v: %s", i, n.kind, w.now(), diff)
		}
		if at, ok := n.ctx.Deadline(); ok != n.has || ok && at.Sub(dawn) != n.until {
			w.fatalf("%d, a %s: Deadline = %v, %v; want %v, %v", i, n.kind, at.Sub(dawn), ok, n.until, n.has)
		}
		if n.err == nil && n.own {
			pending++
		}
	}
	// A goroutine that ends a context stops its timer afterwards.
	suite.Eventually(quiet{w.t, func() {
		w.fatalf("%d timers are pending, want %d", w.m.Stats().Pending, pending)
	}}, "", func() bool { return w.m.Stats().Pending == pending })
}

func (n *ctxNode) diff() string {
	switch {
	case n.ctx.Err() != n.err:
		return fmt.Sprintf("Err() = %v, want %v", n.ctx.Err(), n.err)
	case context.Cause(n.ctx) != n.cause:
		return fmt.Sprintf("Cause = %v, want %v", context.Cause(n.ctx), n.cause)
	case isDone(n.ctx) != (n.err != nil):
		return fmt.Sprintf("done = %v", isDone(n.ctx))
	default:
		return ""
	}
}

func playContexts(t testing.TB, script []byte) {
	w := &ctxModel{t: t, in: script, m: newManual(t, nil)}
	root := &ctxNode{kind: "root", parent: -1, ctx: context.Background()}
	if w.byte()%2 == 0 {
		root.kind = "cancel"
		root.ctx, root.cancel = context.WithCancelCause(root.ctx)
	}
	w.all = append(w.all, root)
	for len(w.in) > 0 {
		switch op := w.byte() % 8; {
		case op < 4 && len(w.all) < 60:
			w.derive()
		case op < 5:
			w.cancel()
		default:
			w.advance()
		}
		w.check()
	}
	for i, n := range w.all {
		if n.cancel != nil {
			n.cancel(context.Canceled)
			w.end(i, context.Canceled, context.Canceled)
		}
	}
	w.check()
	for i, n := range w.all {
		if n.called != nil && n.err != nil {
			suite.Await(t, fmt.Sprintf("the function of %d was called", i), n.called)
		} else if n.called != nil && isClosed(n.called) {
			w.fatalf("the function of %d was called", i)
		}
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestContextModel(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range suite.Scale(1500) {
		script := make([]byte, 10+rng.IntN(300))
		for k := range script {
			script[k] = byte(rng.Uint32())
		}
		playContexts(t, script)
	}
}

func FuzzContext(f *testing.F) {
	f.Add([]byte("a deadline passes to the nanosecond"))
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) > 1000 {
			t.Skip("long scripts are the random test's")
		}
		playContexts(t, script)
	})
}
