package timer_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/detent-go/detent/timer"
)

// withTimeout is context.WithTimeout or ours.
type withTimeout func(context.Context, time.Duration) (context.Context, context.CancelFunc)

// sideBySide runs f as a benchmark with package context and with this one.
func sideBySide(b *testing.B, f func(b *testing.B, with withTimeout)) {
	for _, engine := range []struct {
		name string
		with withTimeout
	}{{"std", context.WithTimeout}, {"detent", timer.WithTimeout}} {
		b.Run(engine.name, func(b *testing.B) {
			b.ReportAllocs()
			f(b, engine.with)
		})
	}
}

// BenchmarkContext makes contexts and cancels them while others wait, in
// batches of ten, as Go's own benchmark of WithTimeout does. An operation is
// one batch.
func BenchmarkContext(b *testing.B) {
	for waiting := 40; waiting <= 400_000; waiting *= 100 {
		b.Run(fmt.Sprintf("waiting=%d", waiting), func(b *testing.B) {
			sideBySide(b, func(b *testing.B, with withTimeout) {
				benchContexts(b, waiting, context.Background(), func(parent context.Context) context.CancelFunc {
					_, cancel := with(parent, time.Hour)
					return cancel
				})
			})
		})
	}
}

// benchContexts measures batches of ten contexts while some are waiting.
func benchContexts(b *testing.B, waiting int, parent context.Context, with func(context.Context) context.CancelFunc) {
	procs := runtime.GOMAXPROCS(0)
	cancels := make([][]context.CancelFunc, procs)
	var wg sync.WaitGroup
	for i := range cancels {
		wg.Go(func() {
			mine := make([]context.CancelFunc, waiting/procs)
			for j := range mine {
				mine[j] = with(parent)
			}
			cancels[i] = mine
		})
	}
	wg.Wait()
	runtime.GC()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		var batch [10]context.CancelFunc
		for pb.Next() {
			for i := range batch {
				batch[i] = with(parent)
			}
			for _, cancel := range batch {
				cancel()
			}
		}
	})
	b.StopTimer()
	for _, mine := range cancels {
		for _, cancel := range mine {
			cancel()
		}
	}
}

// BenchmarkContextUse does with a context what programs do with it before they
// cancel it.
func BenchmarkContextUse(b *testing.B) {
	type key struct{}
	background := context.Background()
	canceled, cancel := context.WithCancel(background)
	defer cancel()
	for _, use := range []struct {
		name   string
		parent context.Context
		use    func(context.Context)
	}{
		{"Done", background, func(ctx context.Context) { ctx.Done() }},
		{"Child", background, func(ctx context.Context) { _, cancel := context.WithCancel(ctx); cancel() }},
		{"ValueChild", background, func(ctx context.Context) {
			_, cancel := context.WithCancel(context.WithValue(ctx, key{}, 1))
			cancel()
		}},
		// The parent is one that can be canceled, the same for all.
		{"SharedParent", canceled, func(context.Context) {}},
		{"SharedParentDone", canceled, func(ctx context.Context) { ctx.Done() }},
		// The parent is made for the purpose, as in a server for each request.
		{"OwnParent", nil, func(context.Context) {}},
		{"OwnParentChild", nil, func(ctx context.Context) { _, cancel := context.WithCancel(ctx); cancel() }},
	} {
		b.Run(use.name, func(b *testing.B) {
			sideBySide(b, func(b *testing.B, with withTimeout) {
				benchContexts(b, 40, use.parent, func(parent context.Context) context.CancelFunc {
					if parent != nil {
						ctx, cancel := with(parent, time.Hour)
						use.use(ctx)
						return cancel
					}
					parent, cancelParent := context.WithCancel(context.Background())
					parent.Done()
					ctx, cancel := with(parent, time.Hour)
					use.use(ctx)
					return func() { cancel(); cancelParent() }
				})
			})
		})
	}
}

// BenchmarkContextTree makes and cancels a chain of contexts, each the child of
// the one before.
func BenchmarkContextTree(b *testing.B) {
	for _, depth := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("depth=%d", depth), func(b *testing.B) {
			sideBySide(b, func(b *testing.B, with withTimeout) {
				for b.Loop() {
					ctx, cancel := with(context.Background(), time.Hour)
					for i := range depth - 1 {
						// Each a little earlier, or it would not need a timer.
						var cancelChild context.CancelFunc
						ctx, cancelChild = with(ctx, time.Hour-time.Duration(i+1)*time.Millisecond)
						defer cancelChild()
					}
					cancel()
				}
			})
		})
	}
}

// BenchmarkContextErr asks a context that is not done.
func BenchmarkContextErr(b *testing.B) {
	parent, cancelParent := context.WithCancel(context.Background())
	defer cancelParent()
	type key struct{}
	for _, with := range []struct {
		name string
		ask  func(context.Context)
	}{
		{"Err", func(ctx context.Context) { ctx.Err() }},
		{"Done", func(ctx context.Context) { ctx.Done() }},
		{"Value", func(ctx context.Context) { ctx.Value(key{}) }},
	} {
		b.Run(with.name, func(b *testing.B) {
			sideBySide(b, func(b *testing.B, start withTimeout) {
				ctx, cancel := start(parent, time.Hour)
				defer cancel()
				ctx.Done()
				for b.Loop() {
					with.ask(ctx)
				}
			})
		})
	}
}
