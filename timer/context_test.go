package timer_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/detent-go/detent/internal/suite"
	"github.com/detent-go/detent/timer"
)

// far is a timeout that no test lives to see.
const far = 1000 * time.Hour

// isDone reports whether ctx is done now.
func isDone(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return true
	default:
		return false
	}
}

// wantEnd checks that ctx has ended in the given way, now.
func wantEnd(t testing.TB, what string, ctx context.Context, err, cause error) {
	t.Helper()
	if got := ctx.Err(); got != err {
		t.Errorf("%s: Err() = %v, want %v", what, got, err)
	}
	if got := context.Cause(ctx); got != cause {
		t.Errorf("%s: Cause = %v, want %v", what, got, cause)
	}
	if got := isDone(ctx); got != (err != nil) {
		t.Errorf("%s: done = %v, Err() = %v", what, got, err)
	}
}

// A deadline passes once, not early, on services of every kind.
func TestContextNeverEarly(t *testing.T) {
	eachService(t, func(t *testing.T, open func() *timer.Service) {
		s := open()
		defer closes(t, s)
		n := suite.Scale(2000)
		var early, twice atomic.Int64
		fired := make([]atomic.Int32, n)
		var ended sync.WaitGroup
		cause := errors.New("too slow")
		for i := range n {
			d := time.Duration(i%50) * 97 * time.Microsecond
			start := time.Now()
			ctx, cancel := s.WithTimeoutCause(context.Background(), d, cause)
			defer cancel()
			if at, ok := ctx.Deadline(); !ok || at.Sub(start) < d {
				t.Fatalf("WithTimeout(%v) has the deadline %v after its start, %v", d, at.Sub(start), ok)
			}
			ended.Add(1)
			context.AfterFunc(ctx, func() {
				if time.Since(start) < d {
					early.Add(1)
				}
				if fired[i].Add(1) > 1 {
					twice.Add(1)
				}
				wantEnd(t, "a context after its deadline", ctx, context.DeadlineExceeded, cause)
				ended.Done()
			})
		}
		awaitAll(t, "every deadline passed", &ended)
		if early.Load()+twice.Load() > 0 {
			t.Errorf("of %d deadlines %d passed early and %d twice", n, early.Load(), twice.Load())
		}
		if p := s.Stats().Pending; p != 0 {
			t.Errorf("%d pending after the last deadline", p)
		}
	})
}

// awaitAll waits for wg.
func awaitAll(t testing.TB, what string, wg *sync.WaitGroup) {
	t.Helper()
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	suite.Await(t, what, done)
}

// What depends on a context of ours is done when its cancel function returns,
// whatever it is and whether or not somebody has asked for Done before.
func TestContextCancelIsSynchronous(t *testing.T) {
	type key struct{}
	value := func(ctx context.Context) context.Context { return context.WithValue(ctx, key{}, 1) }
	drop := func(ctx context.Context, cancel context.CancelFunc) context.Context {
		t.Cleanup(cancel)
		return ctx
	}
	deeper := map[string]func(context.Context) context.Context{
		"itself":     func(ctx context.Context) context.Context { return ctx },
		"ours":       func(ctx context.Context) context.Context { return drop(timer.WithTimeout(ctx, far/2)) },
		"std":        func(ctx context.Context) context.Context { return drop(context.WithCancel(ctx)) },
		"stdTimeout": func(ctx context.Context) context.Context { return drop(context.WithTimeout(ctx, far/2)) },
		"value":      value,
		"wrapped":    func(ctx context.Context) context.Context { return wrapped{ctx} },
	}
	for name1, derive1 := range deeper {
		for name2, derive2 := range deeper {
			for _, asked := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/%v", name1, name2, asked), func(t *testing.T) {
					ctx, cancel := timer.WithTimeoutCause(context.Background(), far, errors.New("never"))
					defer cancel()
					if asked {
						ctx.Done()
					}
					mid := derive1(value(ctx))
					leaf := derive2(value(mid))
					leafDone := leaf.Done()
					ours, cancelOurs := timer.WithTimeout(value(leaf), time.Hour)
					defer cancelOurs()
					wantEnd(t, "before", leaf, nil, nil)
					cancel()
					for what, c := range map[string]context.Context{"ctx": ctx, "mid": mid, "leaf": leaf, "ours": ours} {
						wantEnd(t, what, c, context.Canceled, context.Canceled)
					}
					select {
					case <-leafDone:
					default:
						t.Error("a channel that Done returned before is open")
					}
				})
			}
		}
	}
}

// wrapped is a context of foreign type that changes nothing.
type wrapped struct{ context.Context }

// When a context of package context is canceled, the methods of ours below it
// tell so at once, and everything else does soon.
func TestContextParentCanceled(t *testing.T) {
	type key struct{}
	cause := errors.New("the parent's")
	for _, asked := range []bool{false, true} {
		parent, cancelParent := context.WithCancelCause(context.Background())
		a, cancelA := timer.WithTimeout(context.WithValue(parent, key{}, 1), far)
		b, cancelB := timer.WithTimeout(context.WithValue(a, key{}, 2), far/2)
		c, cancelC := timer.WithTimeout(b, far/3)
		leaf, cancelLeaf := context.WithCancel(c)
		beside, cancelBeside := timer.WithTimeout(parent, far)
		var before <-chan struct{}
		if asked {
			before = c.Done()
		}
		cancelParent(cause)
		wantEnd(t, "grandchild", c, context.Canceled, cause)
		wantEnd(t, "child", b, context.Canceled, cause)
		wantEnd(t, "nearest", a, context.Canceled, cause)
		wantEnd(t, "beside", beside, context.Canceled, cause)
		suite.Await(t, "a context of package context was done", leaf.Done())
		wantEnd(t, "below", leaf, context.Canceled, cause)
		if asked {
			suite.Await(t, "a channel from before was closed", before)
		}
		late, cancelLate := timer.WithTimeoutCause(parent, far, errors.New("never"))
		wantEnd(t, "made afterwards", late, context.Canceled, cause)
		for _, cancel := range []func(){cancelA, cancelB, cancelC, cancelLeaf, cancelBeside, cancelLate} {
			cancel()
		}
		wantEnd(t, "after its own cancel", a, context.Canceled, cause)
	}
}

// A cancellation that has happened is what a cancel function or a deadline that
// comes later finds.
func TestContextFirstEndStays(t *testing.T) {
	own, parents := errors.New("own"), errors.New("parent's")
	t.Run("deadline, then all", func(t *testing.T) {
		parent, cancelParent := context.WithCancelCause(context.Background())
		ctx, cancel := timer.WithTimeoutCause(parent, time.Millisecond, own)
		child, cancelChild := context.WithCancelCause(ctx)
		suite.Await(t, "the deadline passed", ctx.Done())
		cancelParent(parents)
		cancel()
		cancelChild(parents)
		wantEnd(t, "ctx", ctx, context.DeadlineExceeded, own)
		wantEnd(t, "child", child, context.DeadlineExceeded, own)
	})
	t.Run("cancel, then parent", func(t *testing.T) {
		for _, asked := range []bool{false, true} {
			parent, cancelParent := context.WithCancelCause(context.Background())
			ctx, cancel := timer.WithTimeoutCause(parent, far, own)
			if asked {
				ctx.Done()
			}
			cancel()
			cancelParent(parents)
			wantEnd(t, "ctx", ctx, context.Canceled, context.Canceled)
		}
	})
	t.Run("child, then ctx", func(t *testing.T) {
		ctx, cancel := timer.WithTimeoutCause(context.Background(), time.Hour, own)
		child, cancelChild := context.WithCancelCause(ctx)
		cancelChild(parents)
		cancel()
		wantEnd(t, "child", child, context.Canceled, parents)
		wantEnd(t, "ctx", ctx, context.Canceled, context.Canceled)
	})
	t.Run("at once", func(t *testing.T) {
		for _, d := range []time.Duration{0, -1, -1 << 63} {
			parent, cancelParent := context.WithCancelCause(context.Background())
			ctx, cancel := timer.WithTimeoutCause(parent, d, own)
			wantEnd(t, "of no time", ctx, context.DeadlineExceeded, own)
			cancel()
			cancelParent(parents)
			wantEnd(t, "after its cancel", ctx, context.DeadlineExceeded, own)
		}
		ctx, cancel := timer.WithDeadline(context.Background(), time.Now().Round(0).Add(-time.Second))
		defer cancel()
		wantEnd(t, "without monotonic reading", ctx, context.DeadlineExceeded, context.DeadlineExceeded)
	})
}

// The channel is the same at all times, and closed before Err says anything.
func TestContextDoneIsOne(t *testing.T) {
	for _, end := range []string{"cancel", "deadline"} {
		for _, first := range []string{"Done", "Value", "Err"} {
			d := far
			if end == "deadline" {
				d = time.Millisecond
			}
			ctx, cancel := timer.WithTimeout(context.Background(), d)
			channels := []<-chan struct{}{}
			if first == "Done" {
				channels = append(channels, ctx.Done(), ctx.Done())
			}
			if end == "cancel" {
				cancel()
			}
			suite.Eventually(t, "the context ended", func() bool { return ctx.Err() != nil })
			if first == "Value" {
				ctx.Value(first)
				context.Cause(ctx)
			}
			channels = append(channels, ctx.Done())
			context.Cause(ctx)
			cancel()
			channels = append(channels, ctx.Done())
			for _, c := range channels {
				if c != channels[0] {
					t.Errorf("%s, %s first: Done returned different channels", end, first)
				}
				select {
				case <-c:
				default:
					t.Errorf("%s, %s first: Err is not nil and the channel is open", end, first)
				}
			}
		}
	}
	for range suite.Scale(300) {
		ctx, cancel := timer.WithTimeout(context.Background(), far)
		done := ctx.Done()
		go cancel()
		for ctx.Err() == nil {
			runtime.Gosched()
		}
		select {
		case <-done:
		default:
			t.Fatal("Err is not nil and Done is open")
		}
	}
}

func TestContextValue(t *testing.T) {
	type key string
	root := context.WithValue(context.Background(), key("root"), 1)
	parent, cancelParent := context.WithCancel(root)
	defer cancelParent()
	ctx, cancel := timer.WithTimeoutCause(context.WithValue(parent, key("parent"), 2), far, errors.New("never"))
	leaf := context.WithValue(ctx, key("leaf"), 3)
	check := func(when string) {
		t.Helper()
		for k, want := range map[key]any{"root": 1, "parent": 2, "leaf": nil, "none": nil} {
			if got := ctx.Value(k); got != want {
				t.Errorf("%s: Value(%q) = %v, want %v", when, k, got, want)
			}
		}
		if leaf.Value(key("leaf")) != 3 || leaf.Value(key("root")) != 1 || leaf.Value(1) != nil {
			t.Errorf("%s: wrong values below", when)
		}
		if got := context.WithoutCancel(leaf).Value(key("parent")); got != 2 {
			t.Errorf("%s: Value below WithoutCancel = %v, want 2", when, got)
		}
	}
	check("at first")
	without := context.WithoutCancel(leaf)
	ctx.Done()
	check("after Done")
	cancel()
	check("after cancel")
	wantEnd(t, "WithoutCancel of a canceled context", without, nil, nil)
	below, cancelBelow := timer.WithTimeout(without, far)
	defer cancelBelow()
	wantEnd(t, "below WithoutCancel of a canceled context", below, nil, nil)
}

// Everything that a context says of itself is as package context's says it.
func TestContextString(t *testing.T) {
	remaining := regexp.MustCompile(` \[[^]]*\]`)
	str := func(ctx context.Context) string { return remaining.ReplaceAllString(fmt.Sprint(ctx), " []") }
	type key int
	at := time.Now().Add(time.Hour)
	canceled, cancel := context.WithCancel(context.TODO())
	defer cancel()
	for i, parent := range []context.Context{
		context.Background(), canceled, context.WithValue(canceled, key(1), "v"), wrapped{canceled},
		plain{newForeign()}, context.WithoutCancel(canceled),
	} {
		std, cancelStd := context.WithDeadline(parent, at)
		ours, cancelOurs := timer.WithDeadline(parent, at)
		same := func(std, ours context.Context) {
			t.Helper()
			if str(std) != str(ours) {
				t.Errorf("parent %d: String() = %q, want %q", i, str(ours), str(std))
			}
			d1, ok1 := std.Deadline()
			d2, ok2 := ours.Deadline()
			if d1 != d2 || ok1 != ok2 {
				t.Errorf("parent %d: Deadline() = %v, %v, want %v, %v", i, d2, ok2, d1, ok1)
			}
		}
		same(std, ours)
		same(context.WithValue(std, key(2), 3), context.WithValue(ours, key(2), 3))
		same(context.WithoutCancel(std), context.WithoutCancel(ours))
		// The parent's deadline is earlier, or the child's, or both are the same.
		for _, d := range []time.Duration{time.Hour, -time.Minute, 0} {
			a, cancelA := context.WithDeadline(std, at.Add(d))
			b, cancelB := timer.WithDeadline(ours, at.Add(d))
			same(a, b)
			cancelA()
			cancelB()
		}
		cancelStd()
		cancelOurs()
		same(std, ours)
	}
}

func TestContextMisuse(t *testing.T) {
	panics := func(f func()) (v any) {
		defer func() { v = recover() }()
		f()
		return nil
	}
	var none context.Context
	want := panics(func() {
		_, cancel := context.WithTimeout(none, 1)
		cancel()
	})
	for name, f := range map[string]func(){
		"WithTimeout":       func() { timer.WithTimeout(none, 1) },
		"WithDeadline":      func() { timer.WithDeadline(none, time.Now()) },
		"WithTimeoutCause":  func() { timer.WithTimeoutCause(none, 1, nil) },
		"WithDeadlineCause": func() { timer.WithDeadlineCause(none, time.Now(), nil) },
	} {
		if got := panics(f); got != want {
			t.Errorf("%s with a nil parent: panic value %v, want %v", name, got, want)
		}
	}
}

// After Close, deadlines do not pass, and everything else works.
func TestContextClose(t *testing.T) {
	eachService(t, func(t *testing.T, open func() *timer.Service) {
		for d := 50 * time.Millisecond; ; d *= 2 {
			s, start := open(), time.Now()
			parent, cancelParent := context.WithCancelCause(context.Background())
			a, cancelA := s.WithTimeout(context.Background(), d)
			b, cancelB := s.WithTimeout(parent, d)
			c, cancelC := s.WithTimeout(a, d-1)
			std, cancelStd := context.WithCancel(b)
			defer cancelA()
			defer cancelB()
			defer cancelC()
			defer cancelStd()
			closes(t, s)
			if time.Since(start) > d && d < 10*time.Second {
				continue
			}
			time.Sleep(d + 20*time.Millisecond)
			for _, ctx := range []context.Context{a, b, c, std} {
				wantEnd(t, "after Close", ctx, nil, nil)
			}
			for name, f := range map[string]func(d time.Duration){
				"WithTimeout":       func(d time.Duration) { s.WithTimeout(context.Background(), d) },
				"WithDeadline":      func(d time.Duration) { s.WithDeadline(parent, time.Now().Add(d)) },
				"WithTimeoutCause":  func(d time.Duration) { s.WithTimeoutCause(a, d, nil) },
				"WithDeadlineCause": func(d time.Duration) { s.WithDeadlineCause(a, time.Now().Add(d), nil) },
			} {
				wantClosed(t, name, func() { f(-1) })
				wantClosed(t, name, func() { f(time.Nanosecond) })
				wantClosed(t, name, func() { f(far) })
			}
			cancelA()
			wantEnd(t, "canceled after Close", a, context.Canceled, context.Canceled)
			wantEnd(t, "child of one canceled after Close", c, context.Canceled, context.Canceled)
			cause := errors.New("the parent's")
			cancelParent(cause)
			wantEnd(t, "parent canceled after Close", b, context.Canceled, cause)
			suite.Await(t, "std child", std.Done())
			return
		}
	})
}
