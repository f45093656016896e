package shard

import (
	"context"
	"fmt"
	"reflect"
	"runtime"
	"runtime/trace"
	"time"
)

// fireTraced is fire while an execution trace is being recorded: in a region of
// its own, named after the callback, which begins with the deadline and by how much
// it was missed.
func (a action) fireTraced(s *Shard, h Handle, deadline int64) {
	ctx := context.Background()
	defer trace.StartRegion(ctx, a.name()).End() // The callback may end the goroutine.
	late := time.Duration(s.group.clock() - deadline)
	trace.Log(ctx, "lateness", late.String())
	if s.group.manual == nil {
		trace.Log(ctx, "deadline", time.Now().Add(-late).Format("15:04:05.000000"))
	}
	a.fire(s, h)
}

// name returns the name of the function or the type that a timer acts on.
func (a action) name() string {
	if a.f == nil {
		return fmt.Sprintf("timer %T", a.t)
	}
	f := runtime.FuncForPC(reflect.ValueOf(a.f).Pointer())
	if f == nil {
		return "timer"
	}
	return "timer " + f.Name()
}
