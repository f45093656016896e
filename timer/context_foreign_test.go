package timer_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/detent-go/detent/internal/suite"
	"github.com/detent-go/detent/timer"
)

// listErr is an error that cannot be compared with itself.
type listErr []string

func (listErr) Error() string { return "list" }

// foreign is a context of foreign type that is ended by hand. It counts who asks
// it for a call, unless it is hidden behind another type.
type foreign struct {
	context.Context
	done chan struct{}

	mu    sync.Mutex
	err   error
	calls map[*int]func()
}

func newForeign() *foreign {
	return &foreign{Context: context.Background(), done: make(chan struct{}), calls: map[*int]func(){}}
}

func (f *foreign) Done() <-chan struct{} { return f.done }
func (f *foreign) String() string        { return "foreign" } // fmt would read the fields.

func (f *foreign) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

func (f *foreign) AfterFunc(call func()) func() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	id := new(int)
	f.calls[id] = call
	return func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		_, ok := f.calls[id]
		delete(f.calls, id)
		return ok
	}
}

func (f *foreign) asked() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.calls)
}

func (f *foreign) end(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
	close(f.done)
	for _, call := range f.calls {
		go call()
	}
	f.calls = nil
}

// plain is a context without more methods than the interface has.
type plain struct{ f *foreign }

func (p plain) Deadline() (time.Time, bool) { return time.Time{}, false }
func (p plain) Done() <-chan struct{}       { return p.f.Done() }
func (p plain) Err() error                  { return p.f.Err() }
func (p plain) Value(any) any               { return nil }

func TestContextForeignParents(t *testing.T) {
	odd := listErr{"odd"}
	for name, derive := range map[string]func(*foreign) context.Context{
		"AfterFunc": func(f *foreign) context.Context { return f },
		"plain":     func(f *foreign) context.Context { return plain{f} },
		"value":     func(f *foreign) context.Context { return context.WithValue(f, &odd, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newForeign()
			parent := derive(f)
			var below []context.Context
			for range 5 {
				ctx, cancel := timer.WithTimeout(parent, far)
				defer cancel()
				child, cancelChild := context.WithCancel(ctx)
				defer cancelChild()
				below = append(below, ctx, child)
			}
			_, cancel := timer.WithTimeout(parent, far)
			cancel()
			if name == "AfterFunc" && f.asked() == 0 {
				t.Error("the parent's AfterFunc method was not used")
			}
			f.end(odd)
			for i, ctx := range below {
				suite.Await(t, "a context below a foreign one was done", ctx.Done())
				for what, err := range map[string]error{"Err": ctx.Err(), "Cause": context.Cause(ctx)} {
					if got, ok := err.(listErr); !ok || &got[0] != &odd[0] {
						t.Errorf("context %d: %s = %v, want the parent's error", i, what, err)
					}
				}
			}
			ctx, cancel := timer.WithTimeout(parent, far)
			defer cancel()
			if err, ok := ctx.Err().(listErr); !ok {
				t.Errorf("made afterwards: Err() = %v", err)
			}
		})
	}
	t.Run("detach", func(t *testing.T) {
		f := newForeign()
		var cancels []context.CancelFunc
		for range 10 {
			_, cancel := timer.WithTimeout(f, far)
			cancels = append(cancels, cancel)
		}
		expired, cancel := timer.WithTimeout(f, time.Millisecond)
		defer cancel()
		for _, cancel := range cancels {
			cancel()
		}
		suite.Await(t, "the deadline passed", expired.Done())
		suite.Eventually(t, "nobody asks the parent for a call", func() bool { return f.asked() == 0 })
	})
	t.Run("detach late", func(t *testing.T) {
		// The deadlines pass while the parent is being asked for a call.
		f := newForeign()
		slow := slowAsked{f}
		first, cancel := timer.WithTimeout(slow, far)
		defer cancel()
		for range 5 {
			ctx, cancel := timer.WithTimeout(slow, time.Millisecond)
			suite.Await(t, "the deadline passed", ctx.Done())
			cancel()
		}
		wantEnd(t, "the first", first, nil, nil)
		cancel()
		suite.Eventually(t, "nobody asks the parent for a call", func() bool { return f.asked() == 0 })
	})
	t.Run("call before Done", func(t *testing.T) {
		// A context may make its calls, and say so by Err, before its channel
		// is closed.
		f := newForeign()
		var below []context.Context
		for range 5 {
			ctx, cancel := timer.WithTimeout(f, far)
			defer cancel()
			below = append(below, ctx)
		}
		keep := f.done
		f.done = make(chan struct{})
		f.end(odd)
		for _, ctx := range below {
			suite.Await(t, "a context was done", ctx.Done())
			if _, ok := ctx.Err().(listErr); !ok {
				t.Errorf("Err() = %v, want the parent's error", ctx.Err())
			}
		}
		close(keep)
	})
	t.Run("causes that cannot be compared", func(t *testing.T) {
		parent, cancelParent := context.WithCancelCause(context.Background())
		ctx, cancel := timer.WithTimeout(parent, far)
		defer cancel()
		ctx.Done()
		cancelParent(odd)
		if _, ok := context.Cause(ctx).(listErr); !ok || ctx.Err() != context.Canceled {
			t.Errorf("Err() = %v, Cause = %v", ctx.Err(), context.Cause(ctx))
		}
	})
	t.Run("never done", func(t *testing.T) {
		inner, cancelInner := context.WithCancelCause(context.Background())
		ctx, cancel := timer.WithTimeout(nilDone{inner}, far)
		cancelInner(odd)
		wantEnd(t, "below one that hides its parent's end", ctx, nil, nil)
		cancel()
		wantEnd(t, "the same when canceled", ctx, context.Canceled, context.Canceled)
	})
}

// slowAsked is a foreign context that takes its time when it is asked for a call.
type slowAsked struct{ *foreign }

func (s slowAsked) AfterFunc(call func()) func() bool {
	time.Sleep(5 * time.Millisecond)
	return s.foreign.AfterFunc(call)
}

// nilDone is a context that its parent's end does not reach, but for Value.
type nilDone struct{ context.Context }

func (nilDone) Done() <-chan struct{} { return nil }
func (nilDone) Err() error            { return nil }
