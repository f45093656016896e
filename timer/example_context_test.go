package timer_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/detent-go/detent/timer"
)

func ExampleWithTimeout() {
	ctx, cancel := timer.WithTimeout(context.Background(), 50*time.Microsecond)
	defer cancel()

	select {
	case <-time.After(time.Minute):
		fmt.Println("overslept")
	case <-ctx.Done():
		fmt.Println(ctx.Err())
	}
	// Output: context deadline exceeded
}

func ExampleWithTimeoutCause() {
	slow := errors.New("the replica is slow")
	ctx, cancel := timer.WithTimeoutCause(context.Background(), time.Millisecond, slow)
	defer cancel()

	// Contexts of package context can be derived from it, and it from them.
	query, stop := context.WithCancel(ctx)
	defer stop()

	<-query.Done()
	fmt.Println(query.Err())
	fmt.Println(context.Cause(query))
	// Output:
	// context deadline exceeded
	// the replica is slow
}

// A service of its own has its own slack, and its own counts.
func ExampleService_WithTimeout() {
	s, err := timer.New(nil)
	if err != nil {
		panic(err)
	}
	defer s.Close()

	ctx, cancel := s.WithTimeout(context.Background(), time.Hour)
	fmt.Println(s.Stats().Pending, ctx.Err())
	cancel()
	fmt.Println(s.Stats().Pending, ctx.Err())
	// Output:
	// 1 <nil>
	// 0 context canceled
}
