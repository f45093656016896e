package timer_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/detent-go/detent/internal/suite"
	"github.com/detent-go/detent/timer"
)

// pendingIs waits for the service to have n timers pending.
func pendingIs(t testing.TB, what string, s *timer.Service, n uint64) {
	t.Helper()
	suite.Eventually(t, what, func() bool { return s.Stats().Pending == n })
}

// A context that ends in any way has no timer any more.
func TestContextPending(t *testing.T) {
	s := mustNew(t, nil)
	const n = 50
	var cancels []context.CancelFunc
	many := func(parent context.Context, d time.Duration) (last context.Context) {
		for i := range n {
			if i%2 == 0 {
				parent = context.WithValue(parent, twinKey(i), i)
			}
			ctx, cancel := s.WithTimeout(parent, d-time.Duration(i))
			cancels = append(cancels, cancel)
			last = ctx
		}
		return last
	}
	now := func(what string, want uint64) {
		t.Helper()
		if got := s.Stats().Pending; got != want {
			t.Errorf("%s: %d pending, want %d", what, got, want)
		}
	}
	many(context.Background(), far)
	now("started", n)
	for _, cancel := range cancels {
		cancel()
		cancel()
	}
	now("canceled", 0)

	ours, cancelOurs := s.WithTimeout(context.Background(), far)
	many(ours, far/2)
	now("started below one of ours", n+1)
	cancelOurs()
	now("parent of ours canceled", 0)

	std, cancelStd := context.WithCancel(context.Background())
	many(std, far)
	now("started below one of package context", n)
	cancelStd()
	pendingIs(t, "nothing pending below a canceled context of package context", s, 0)

	f := newForeign()
	many(f, far)
	now("started below a foreign one", n)
	f.end(errors.New("foreign"))
	pendingIs(t, "nothing pending below a foreign context that ended", s, 0)

	std, cancelStd = context.WithCancel(context.Background())
	defer cancelStd()
	suite.Await(t, "deadlines passed", many(std, time.Millisecond).Done())
	pendingIs(t, "nothing pending after the deadlines", s, 0)

	cancelStd()
	many(std, far)
	many(std, -1)
	many(context.Background(), 0)
	now("done when made", 0)

	// The parent's deadline is the earlier one: no timer is needed.
	short, cancelShort := s.WithTimeout(context.Background(), far/2)
	for range n {
		_, cancel := s.WithTimeout(short, far)
		defer cancel()
	}
	now("later than the parent's", 1)
	cancelShort()
	for _, cancel := range cancels {
		cancel()
	}
	now("at the end", 0)
}

// Contexts make no goroutines, whatever is above and below them, as long as no
// parent of foreign type is without an AfterFunc method.
func TestContextGoroutines(t *testing.T) {
	s := mustNew(t, nil)
	s.WithSlack(0).Sleep(time.Microsecond) // Starts what the service needs itself.
	const n = 1000
	same := func(what string, before int) {
		t.Helper()
		// Those that end are waited for: a test from before may have left some.
		suite.Eventually(t, "no more goroutines than before: "+what, func() bool {
			return runtime.NumGoroutine() <= before
		})
	}
	before := runtime.NumGoroutine()
	std, cancelStd := context.WithCancel(context.Background())
	f := newForeign()
	value := func(ctx context.Context) context.Context { return context.WithValue(ctx, twinKey(0), 0) }
	for _, parent := range []context.Context{context.Background(), std, value(std), wrapped{std}, f} {
		for i := range n {
			ctx, cancel := s.WithTimeout(parent, far)
			defer cancel()
			if i%2 == 0 {
				ctx.Done()
			}
			below := []context.Context{ctx, value(ctx), wrapped{value(ctx)}}[i%3]
			for range 2 {
				var cancelBelow context.CancelFunc
				below, cancelBelow = context.WithCancel(below)
				defer cancelBelow()
				below, cancelBelow = s.WithTimeout(value(below), far/2)
				defer cancelBelow()
			}
			context.AfterFunc(value(ctx), func() {})
			if i == n/2 {
				cancel()
			}
		}
	}
	same("while they live", before)
	cancelStd()
	f.end(context.Canceled)
	same("when they have ended", before)
}

// Canceling a parent of package context starts a few goroutines, not one for
// each context.
func TestContextParentOfMany(t *testing.T) {
	s := mustNew(t, nil)
	n := suite.Scale(20000)
	before := runtime.NumGoroutine()
	parent, cancelParent := context.WithCancel(context.Background())
	all := make([]context.Context, n)
	for i := range all {
		ctx, cancel := s.WithTimeout(parent, far)
		defer cancel()
		ctx.Done()
		all[i] = ctx
	}
	cancelParent()
	if now := runtime.NumGoroutine(); now > before+50 {
		t.Errorf("%d goroutines when the parent of %d contexts was canceled, %d before", now, n, before)
	}
	for _, ctx := range all {
		wantEnd(t, "a context", ctx, context.Canceled, context.Canceled)
	}
	pendingIs(t, "nothing is pending", s, 0)
}

// A foreign parent without an AfterFunc method takes a goroutine as long as
// something depends on it.
func TestContextPlainParent(t *testing.T) {
	s := mustNew(t, nil)
	before := runtime.NumGoroutine()
	parent := plain{newForeign()}
	for range 3 {
		var cancels []context.CancelFunc
		for range 100 {
			_, cancel := s.WithTimeout(parent, far)
			cancels = append(cancels, cancel)
		}
		if now := runtime.NumGoroutine(); now > before+50 {
			t.Errorf("%d goroutines with 100 contexts below one plain parent, %d before", now, before)
		}
		for _, cancel := range cancels {
			cancel()
		}
		suite.Eventually(t, "no more goroutines than before", func() bool { return runtime.NumGoroutine() <= before })
	}
}

// Siblings end in any order, and each by itself.
func TestContextSiblings(t *testing.T) {
	s := mustNew(t, nil)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range suite.Scale(50) {
		for _, kind := range []string{"std", "ours", "foreign"} {
			var parent context.Context
			var end context.CancelFunc
			switch kind {
			case "std":
				parent, end = context.WithCancel(context.Background())
			case "ours":
				parent, end = s.WithTimeout(context.Background(), far)
			case "foreign":
				f := newForeign()
				parent, end = f, func() { f.end(context.Canceled) }
			}
			all := make([]context.Context, 30)
			cancels := make([]context.CancelFunc, len(all))
			for i := range all {
				all[i], cancels[i] = s.WithTimeout(parent, far/2)
				defer cancels[i]()
			}
			order := r.Perm(len(all))
			half := r.IntN(len(all))
			for _, i := range order[:half] {
				wantEnd(t, "before", all[i], nil, nil)
				cancels[i]()
			}
			for _, i := range order[half:] {
				wantEnd(t, "one whose sibling was canceled", all[i], nil, nil)
			}
			end()
			// Without asking a context, which would help.
			pendingIs(t, "all siblings ended with the parent", s, 0)
			for _, ctx := range all {
				wantEnd(t, "in the end", ctx, context.Canceled, context.Canceled)
			}
		}
	}
}

// family is a parent, as far as a test needs it, and its children.
type family struct {
	cancel   context.CancelCauseFunc
	cause    error
	children []context.Context
}

// Contexts with many parents, more than there are places for hubs, end with
// their own.
func TestContextManyParents(t *testing.T) {
	s := mustNew(t, nil)
	n := suite.Scale(3000)
	families := make([]family, n)
	for i := range families {
		f := &families[i]
		f.cause = errors.New("this parent's")
		var parent context.Context
		parent, f.cancel = context.WithCancelCause(context.Background())
		for j := range 1 + i%4 {
			ctx, cancel := s.WithTimeout(parent, far)
			if j == 2 {
				cancel()
				continue
			}
			defer cancel()
			f.children = append(f.children, ctx)
			// Others in between.
			other, cancelOther := s.WithTimeout(families[i/2].children[0], far/2)
			other.Err()
			defer cancelOther()
		}
	}
	for i := range families {
		f := &families[i]
		f.cancel(f.cause)
		for _, ctx := range f.children {
			suite.Await(t, "a child was done", ctx.Done())
			if got := context.Cause(ctx); got != f.cause {
				t.Fatalf("Cause = %v, want %v", got, f.cause)
			}
		}
		if i+1 < n && families[i+1].children[0].Err() != nil {
			t.Fatal("a child of another parent ended")
		}
	}
	pendingIs(t, "nothing is pending", s, 0)
}

// What has ended and is dropped is collected, though its parent lives on.
func TestContextCollected(t *testing.T) {
	s := mustNew(t, nil)
	std, cancelStd := context.WithCancel(context.Background())
	defer cancelStd()
	ours, cancelOurs := s.WithTimeout(std, far)
	defer cancelOurs()
	busy, cancelBusy := s.WithTimeout(std, far) // The hub of std lives on.
	defer cancelBusy()
	busy.Done()
	f := newForeign()
	for name, parent := range map[string]context.Context{
		"background": context.Background(), "std": std, "ours": ours, "foreign": f, "plain": plain{f},
	} {
		for _, end := range []string{"cancel", "deadline", "child"} {
			t.Run(name+"/"+end, func(t *testing.T) {
				var dropped []weak.Pointer[[1024]byte]
				for i := range 20 {
					big := new([1024]byte)
					d := far / 2
					if end == "deadline" {
						d = time.Millisecond
					}
					ctx, cancel := s.WithTimeout(context.WithValue(parent, twinKey(0), big), d)
					if i%2 == 0 {
						ctx.Done()
					}
					dropped = append(dropped, weak.Make(big))
					switch end {
					case "deadline":
						suite.Eventually(t, "the deadline passed", func() bool { return ctx.Err() != nil })
					case "child":
						_, cancelChild := context.WithCancel(ctx)
						cancelChild()
						_, cancelOther := s.WithTimeout(ctx, far/3)
						cancelOther()
						cancel()
					default:
						cancel()
					}
				}
				suite.Eventually(t, "dropped contexts are collected", func() bool {
					runtime.GC()
					for _, p := range dropped {
						if p.Value() != nil {
							return false
						}
					}
					return true
				})
			})
		}
	}
}
