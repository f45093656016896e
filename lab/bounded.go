package lab

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/detent-go/detent/lab/engine"
)

// How long a measurement may take: patience for one that measures an engine, and grace
// for it to end once the run has been stopped. An engine that loses a timer would
// hang the lab otherwise.
const (
	patience = 30 * time.Second
	grace    = time.Second
)

// within returns what f returns, or an error if that takes longer than patience, or
// ctx ends and f takes longer than grace. f goes on then in its goroutine: what it
// measures must be left alone, and not be closed.
func within[T any](ctx context.Context, f func() T) (T, error) {
	result := make(chan T, 1)
	go func() { result <- f() }()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case v := <-result:
		return v, nil
	case <-limit.C:
		var none T
		return none, fmt.Errorf("not done after %v: a timer was lost, or is very late", patience)
	case <-ctx.Done():
	}
	select {
	case v := <-result:
		return v, nil
	case <-time.After(grace):
		var none T
		return none, context.Cause(ctx)
	}
}

// started returns an engine whose goroutines and threads run: its first timer has
// fired.
func started(ctx context.Context, info engine.Info, procs int) (engine.Engine, error) {
	e, err := info.New(procs)
	if err != nil {
		return nil, err
	}
	if _, err := within(ctx, func() time.Time { return <-e.After(10 * time.Millisecond) }); err != nil {
		return nil, fmt.Errorf("the first timer: %w", err)
	}
	return e, nil
}

// collected is a list that several goroutines add to.
type collected[T any] struct {
	mu   sync.Mutex
	list []T
}

func (c *collected[T]) add(v T) {
	c.mu.Lock()
	c.list = append(c.list, v)
	c.mu.Unlock()
}
