package timer_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/detent-go/detent/internal/suite"
	"github.com/detent-go/detent/timer"
)

// twin is one place in two trees of contexts of the same shape: in the one all
// contexts are package context's, in the other those with a deadline are ours.
type twin struct {
	kind       string
	std, mixed context.Context
	stdDone    <-chan struct{} // nil if not asked for when the twin was made
	mixedDone  <-chan struct{}
	cancel     func(error)   // cancels both; nil where there is nothing to cancel
	called     chan struct{} // closed by a function that AfterFunc calls; or nil
}

// twins makes two trees with random shapes, and ends parts of them.
type twins struct {
	t   testing.TB
	r   *rand.Rand
	s   *timer.Service
	all []*twin
	ops []string
}

type twinKey int

func (w *twins) log(format string, args ...any) { w.ops = append(w.ops, fmt.Sprintf(format, args...)) }

// derive adds a child of a random twin.
func (w *twins) derive() {
	at := w.r.IntN(len(w.all))
	p := w.all[at]
	n := &twin{}
	i := len(w.all)
	// Each is a little earlier than any before, so that the parent's is never
	// the earlier deadline.
	far := far - time.Duration(i)*time.Minute
	cause := fmt.Errorf("deadline of %d", i)
	both := func(std, mixed context.CancelFunc) {
		n.cancel = func(error) { std(); mixed() }
		w.t.Cleanup(func() { n.cancel(nil) })
	}
	var cancelStd, cancelMixed context.CancelFunc
	switch k := w.r.IntN(16); {
	case k < 5:
		n.kind = "timeout"
		n.std, cancelStd = context.WithTimeoutCause(p.std, far, cause)
		n.mixed, cancelMixed = w.s.WithTimeoutCause(p.mixed, far, cause)
		both(cancelStd, cancelMixed)
	case k < 7:
		n.kind = "cancel"
		var causeStd, causeMixed context.CancelCauseFunc
		n.std, causeStd = context.WithCancelCause(p.std)
		n.mixed, causeMixed = context.WithCancelCause(p.mixed)
		n.cancel = func(err error) { causeStd(err); causeMixed(err) }
		w.t.Cleanup(func() { n.cancel(nil) })
	case k < 8:
		n.kind = "stdTimeout"
		n.std, cancelStd = context.WithTimeout(p.std, far)
		n.mixed, cancelMixed = context.WithTimeout(p.mixed, far)
		both(cancelStd, cancelMixed)
	case k < 9:
		n.kind = "late" // The parent's deadline is the earlier, if it has one.
		n.std, cancelStd = context.WithTimeout(p.std, 2*far)
		n.mixed, cancelMixed = w.s.WithTimeout(p.mixed, 2*far)
		both(cancelStd, cancelMixed)
	case k < 12:
		n.kind = "value"
		n.std = context.WithValue(p.std, twinKey(i), i)
		n.mixed = context.WithValue(p.mixed, twinKey(i), i)
	case k < 13:
		n.kind = "wrapped"
		n.std, n.mixed = wrapped{p.std}, wrapped{p.mixed}
	case k < 14:
		n.kind = "without"
		n.std, n.mixed = context.WithoutCancel(p.std), context.WithoutCancel(p.mixed)
	case k < 15:
		n.kind = "past"
		n.std, cancelStd = context.WithTimeoutCause(p.std, -1, cause)
		n.mixed, cancelMixed = w.s.WithTimeoutCause(p.mixed, -1, cause)
		both(cancelStd, cancelMixed)
	default:
		n.kind = "soon"
		n.std, cancelStd = context.WithTimeoutCause(p.std, 2*time.Millisecond, cause)
		n.mixed, cancelMixed = w.s.WithTimeoutCause(p.mixed, 2*time.Millisecond, cause)
		both(cancelStd, cancelMixed)
	}
	w.log("%d: %s of %d", i, n.kind, at)
	if w.r.IntN(2) == 0 {
		n.stdDone, n.mixedDone = n.std.Done(), n.mixed.Done()
	}
	if w.r.IntN(4) > 0 {
		n.called = make(chan struct{})
		context.AfterFunc(n.mixed, func() { close(n.called) })
	}
	if n.kind == "soon" {
		// What is made below it while it lives ends with it.
		w.all = append(w.all, n)
		for range 3 {
			if w.r.IntN(2) == 0 {
				w.deriveBelow(n)
			}
		}
		suite.Await(w.t, "a deadline of package context passed", n.std.Done())
		suite.Await(w.t, "a deadline passed", n.mixed.Done())
		w.settled() // Its children end after its channel is closed.
		return
	}
	w.all = append(w.all, n)
}

// deriveBelow adds a cancelable child of p.
func (w *twins) deriveBelow(p *twin) {
	n := &twin{kind: "below"}
	var causeStd, causeMixed context.CancelCauseFunc
	n.std, causeStd = context.WithCancelCause(context.WithValue(p.std, twinKey(-1), 1))
	n.mixed, causeMixed = context.WithCancelCause(context.WithValue(p.mixed, twinKey(-1), 1))
	n.cancel = func(err error) { causeStd(err); causeMixed(err) }
	w.t.Cleanup(func() { n.cancel(nil) })
	w.log("%d: cancel below the last", len(w.all))
	w.all = append(w.all, n)
}

// end cancels a random twin.
func (w *twins) end() {
	at := w.r.IntN(len(w.all))
	if n := w.all[at]; n.cancel != nil {
		cause := fmt.Errorf("cancel of %d", at)
		w.log("cancel %d", at)
		n.cancel(cause)
	}
}

// settled waits until the trees are the same.
func (w *twins) settled() {
	w.t.Helper()
	for i, n := range w.all {
		var diff string
		suite.Eventually(quiet{w.t, func() {
			w.t.Fatalf("twin %d, a %s: %s\n%q", i, n.kind, diff, w.ops)
		}}, "", func() bool {
			diff = n.diff()
			return diff == ""
		})
		for k := range w.all {
			if v1, v2 := n.std.Value(twinKey(k)), n.mixed.Value(twinKey(k)); v1 != v2 {
				w.t.Fatalf("twin %d, a %s: Value(%d) = %v, want %v\n%q", i, n.kind, k, v2, v1, w.ops)
			}
		}
	}
}

// quiet is a test whose Fatalf is replaced.
type quiet struct {
	testing.TB
	fatal func()
}

func (q quiet) Fatalf(string, ...any) { q.fatal() }

func (n *twin) diff() string {
	closed := func(c <-chan struct{}) bool {
		select {
		case <-c:
			return true
		default:
			return false
		}
	}
	switch {
	case n.std.Err() != n.mixed.Err():
		return fmt.Sprintf("Err() = %v, want %v", n.mixed.Err(), n.std.Err())
	case fmt.Sprint(context.Cause(n.std)) != fmt.Sprint(context.Cause(n.mixed)):
		return fmt.Sprintf("Cause = %v, want %v", context.Cause(n.mixed), context.Cause(n.std))
	case isDone(n.std) != isDone(n.mixed):
		return fmt.Sprintf("done = %v, want %v", isDone(n.mixed), isDone(n.std))
	case n.stdDone != nil && closed(n.stdDone) != closed(n.mixedDone):
		return fmt.Sprintf("channel from before closed = %v, want %v", closed(n.mixedDone), closed(n.stdDone))
	case n.called != nil && closed(n.called) != (n.std.Err() != nil):
		return fmt.Sprintf("AfterFunc's function called = %v, Err() = %v", closed(n.called), n.std.Err())
	}
	return ""
}

// Random trees with contexts of ours in them end, part by part, as trees of
// package context do.
func TestContextMixedTree(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	for round := range suite.Scale(150) {
		testMixedTree(t, rand.New(rand.NewPCG(seed, uint64(round))))
	}
}

// FuzzContextMixedTree is TestContextMixedTree with the fuzzer's dice.
func FuzzContextMixedTree(f *testing.F) {
	f.Add([]byte("a tree of contexts"))
	f.Add([]byte{0, 0x80, 0xff, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa})
	f.Fuzz(func(t *testing.T, script []byte) {
		testMixedTree(t, rand.New(&scripted{script, rand.NewPCG(1, 2)}))
	})
}

// scripted is a source of random numbers that begins with a script.
type scripted struct {
	script []byte
	then   rand.Source
}

func (s *scripted) Uint64() uint64 {
	if len(s.script) == 0 {
		return s.then.Uint64()
	}
	b := s.script[0]
	s.script = s.script[1:]
	return uint64(b) * 0x0101010101010101
}

func testMixedTree(t *testing.T, r *rand.Rand) {
	s := mustNewOpen(t, nil)
	w := &twins{t: t, s: s, r: r}
	root, cancelRoot := context.WithCancel(context.Background())
	w.all = append(w.all, &twin{kind: "root", std: root, mixed: root})
	if w.r.IntN(2) == 0 {
		w.all[0] = &twin{kind: "background", std: context.Background(), mixed: context.Background()}
	}
	for range 30 {
		if w.r.IntN(4) == 0 {
			w.end()
			w.settled()
		} else {
			w.derive()
		}
	}
	w.settled()
	cancelRoot()
	w.settled()
	for _, n := range w.all {
		if n.cancel != nil {
			n.cancel(nil)
		}
	}
	w.settled()
	if p := s.Stats().Pending; p != 0 {
		t.Fatalf("%d pending when all is canceled\n%q", p, w.ops)
	}
	closes(t, s)
}

// Goroutines make, ask and end contexts of one growing tree all at once. In the
// end everything ends, once, with an error and a cause that fit.
func TestContextStress(t *testing.T) {
	for _, rootIs := range []string{"std", "ours", "foreign"} {
		t.Run(rootIs, func(t *testing.T) {
			s := mustNew(t, nil)
			var root context.Context
			var cancelRoot context.CancelFunc
			rootCause := errors.New("root")
			switch rootIs {
			case "std":
				ctx, cancel := context.WithCancelCause(context.Background())
				root, cancelRoot = ctx, func() { cancel(rootCause) }
			case "ours":
				ctx, cancel := context.WithCancelCause(context.Background())
				ours, cancelOurs := s.WithTimeout(ctx, far)
				defer cancelOurs()
				root, cancelRoot = ours, func() { cancel(rootCause) }
			case "foreign":
				f := newForeign()
				root, cancelRoot = f, func() { f.end(rootCause) }
			}
			defer func() { cancelRoot() }()
			var mu sync.Mutex
			all := []context.Context{root}
			cancels := []context.CancelFunc{}
			pick := func(r *rand.Rand) context.Context {
				mu.Lock()
				defer mu.Unlock()
				return all[r.IntN(len(all))]
			}
			keep := func(ctx context.Context, cancel context.CancelFunc) {
				mu.Lock()
				defer mu.Unlock()
				all = append(all, ctx)
				if cancel != nil {
					cancels = append(cancels, cancel)
				}
			}
			slow := errors.New("slow")
			var wg sync.WaitGroup
			for g := range 4 * runtime.GOMAXPROCS(0) {
				wg.Go(func() {
					r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), uint64(g)))
					for range suite.Scale(1500) {
						ctx := pick(r)
						switch r.IntN(12) {
						case 0, 1:
							keep(s.WithTimeout(ctx, far-time.Duration(r.IntN(1e9))))
						case 2, 3:
							keep(s.WithTimeoutCause(ctx, time.Duration(r.IntN(3e6)), slow))
						case 4:
							keep(context.WithCancel(ctx))
						case 5:
							keep(context.WithValue(ctx, twinKey(r.IntN(9)), 1), nil)
						case 6:
							stop := context.AfterFunc(ctx, func() {
								if ctx.Err() == nil {
									t.Error("AfterFunc's function called, Err is nil")
								}
							})
							if r.IntN(2) == 0 {
								stop()
							}
						case 7:
							mu.Lock()
							var cancel context.CancelFunc
							if len(cancels) > 0 {
								cancel = cancels[r.IntN(len(cancels))]
							}
							mu.Unlock()
							if cancel != nil {
								cancel()
							}
						case 8:
							_, cancel := s.WithTimeout(ctx, far)
							cancel()
						default:
							err := ctx.Err()
							cause := context.Cause(ctx)
							if err != nil && (cause == nil || !isDone(ctx)) {
								t.Errorf("Err() = %v, Cause = %v, done = %v", err, cause, isDone(ctx))
							}
							if err != nil && ctx.Err() != err {
								t.Errorf("Err() = %v, and then %v", err, ctx.Err())
							}
							ctx.Value(twinKey(1))
							_ = fmt.Sprint(ctx)
						}
					}
				})
			}
			awaitAll(t, "the operations ended", &wg)
			cancelRoot()
			cancelRoot = func() {}
			for _, ctx := range all {
				suite.Await(t, "a context below a canceled one was done", ctx.Done())
				switch err, cause := ctx.Err(), context.Cause(ctx); {
				case err == nil || cause == nil:
					t.Errorf("done, and Err() = %v, Cause = %v", err, cause)
				case err == context.DeadlineExceeded && cause != slow:
					t.Errorf("Err() = %v, Cause = %v", err, cause)
				case err == context.Canceled && cause != rootCause && cause != context.Canceled:
					t.Errorf("Err() = %v, Cause = %v", err, cause)
				}
			}
			suite.Eventually(t, "nothing is pending", func() bool { return s.Stats().Pending == 0 })
			t.Logf("%d contexts", len(all))
			for _, cancel := range cancels {
				cancel()
			}
		})
	}
}
