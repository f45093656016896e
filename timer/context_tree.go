package timer

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/detent-go/detent/internal/shard"
)

// deadlineCtx is a context with a deadline.
//
// # Structure
//
// Most contexts are made, asked for little and canceled. So the struct is the
// target of its timer, and has what every context needs. A [ctxBond] comes with
// it, in the same allocation, for one whose parent can be canceled. Its face (see
// context_face.go) is made when somebody asks for Done.
//
// A context hears of the end of its parent in one of two ways. A parent of this
// package has its children in a list, and ends them while it holds its lock. Of
// other parents package context tells by a call from another goroutine (see
// context_hub.go); methods do not wait for that but look at the parent's Done
// channel themselves (see settle).
//
// What is derived with package context hears of the end through the face, at
// once; but of the end of a parent that is not of this package only by that call.
// Package context leaves no other way. Its contexts end either in the lists of
// their parents, with the parent's Err, or through the AfterFunc method of a
// parent of foreign type. A face can hang on one or the other, and only the other
// lets it end with DeadlineExceeded when our timer says so.
//
// # Ground rules
//
//   - A context ends once, in cancel, with its mu held. All that says how is
//     written before state is, and does not change afterwards.
//   - The timer is stopped, and the parent's list left, without the lock.
//   - Order of locks: a parent's mu, a child's, package context's of the face and
//     what is derived from it; a hub's mu before its members'. Nobody who holds
//     one of package context's locks wants one of ours: it then calls nothing
//     but methods of [ctxSeed].
//   - Methods of parents are not called with a lock held: they may be the user's.
//   - timer and handle are written before anybody but the timer knows the
//     context, and the expiry does not look at them.
//   - parent, deadline and bond do not change.
type deadlineCtx struct {
	parent   context.Context
	deadline time.Time
	timer    *place // nil for a context that had ended when it was made
	handle   shard.Handle
	bond     *ctxBond // nil where neither a parent nor a cause needs one

	// state is how the context ended, or ctxLive, and whether it has a face.
	// It is written with mu held.
	state atomic.Uint32

	mu         sync.Mutex
	children   ctxList
	face       context.Context // written once, before state says ctxFaced
	cancelFace func()          // ends the face as the context has ended; nil once done
}

// Values of deadlineCtx.state.
const (
	ctxLive     = 0
	ctxCanceled = 1 // Err is context.Canceled
	ctxExceeded = 2 // Err is context.DeadlineExceeded
	ctxOther    = 3 // Err is bond.err, from a foreign parent
	ctxEndMask  = 3
	ctxFaced    = 4 // there is a face
)

// ctxBond is the part of a context that ties it to others.
type ctxBond struct {
	// cause is, until the context ends, the cause to have if the deadline
	// passes; then the cause of the end, or nil where that is Err. mu.
	cause error
	err   error // mu; see ctxOther
	// carrier is a context of package context that has the cause.
	carrier atomic.Value

	// done is the Done channel of a parent that is not of this package. Constant.
	done <-chan struct{}
	// up is the nearest of the context itself and its ancestors that has such a
	// parent, if all in between are of this package; else nil. Constant.
	up *deadlineCtx

	// What keeps the context informed of its parent: the list of own or of hub,
	// or a call that stop takes back. mu; constant once the context has ended.
	own  *deadlineCtx
	hub  *ctxHub
	stop func() bool

	// The context's place in that list. mu of own or hub.
	linked     bool
	prev, next *deadlineCtx
}

// ctxSource finds out what the end of parent comes from: a context of this
// package with perhaps a few values on top, own, or otherwise a channel, done.
// Both are nil for a parent that never ends.
func ctxSource(parent context.Context) (own *deadlineCtx, done <-chan struct{}) {
	if p, ok := parent.(*deadlineCtx); ok {
		return p, nil
	}
	done = parent.Done()
	if done == nil {
		return nil, nil
	}
	// The nearest of ours may be further away than one that is not ours, or
	// wrapped by a type with a Done of its own: the channel tells.
	if p, ok := parent.Value(&deadlineCtxKey).(*deadlineCtx); ok && p.Done() == done {
		return p, nil
	}
	return nil, done
}

// deadlineCtxKey is the key for which a deadlineCtx returns itself.
var deadlineCtxKey int

// newContext returns a context without a timer, not linked to its parent yet.
func newContext(parent context.Context, at time.Time, own *deadlineCtx, done <-chan struct{}, cause error) *deadlineCtx {
	if own == nil && done == nil && cause == nil {
		return &deadlineCtx{parent: parent, deadline: at}
	}
	both := &struct {
		ctx  deadlineCtx
		bond ctxBond
	}{
		ctx:  deadlineCtx{parent: parent, deadline: at},
		bond: ctxBond{cause: cause, done: done},
	}
	t := &both.ctx
	t.bond = &both.bond
	switch {
	case done != nil:
		t.bond.up = t
	case own != nil && own.bond != nil:
		t.bond.up = own.bond.up
	}
	return t
}

// orphaned cancels a new context whose parent is done already, and reports
// whether that is so. The arguments are from ctxSource.
func (t *deadlineCtx) orphaned(own *deadlineCtx, done <-chan struct{}) bool {
	switch {
	case own != nil:
		if own.Err() == nil {
			return false
		}
	case done != nil:
		select {
		case <-done:
		default:
			return false
		}
	default:
		return false
	}
	t.parentCanceled()
	return true
}

func (t *deadlineCtx) ended() bool { return t.state.Load()&ctxEndMask != ctxLive }

// Deadline returns the deadline, or that of the parent if it is earlier: so it can be
// where that goes by another clock (see endsFirst).
func (t *deadlineCtx) Deadline() (time.Time, bool) {
	if t.timer != nil && t.timer.svc.e.plain() {
		return t.deadline, true
	}
	if up, ok := t.parent.Deadline(); ok && up.Before(t.deadline) {
		return up, true
	}
	return t.deadline, true
}

// Done returns the channel that is closed when the context ends.
func (t *deadlineCtx) Done() <-chan struct{} {
	t.settle()
	done := t.std().Done()
	if t.ended() {
		<-done // The face may be about to end.
	}
	return done
}

// Err returns why the context ended, or nil. The Done channel is closed by then.
func (t *deadlineCtx) Err() error {
	t.settle()
	s := t.state.Load()
	if s&ctxEndMask != ctxLive && s&ctxFaced != 0 {
		<-t.face.Done() // As above.
	}
	return t.errOf(s)
}

func (t *deadlineCtx) errOf(state uint32) error {
	switch state & ctxEndMask {
	case ctxCanceled:
		return context.Canceled
	case ctxExceeded:
		return context.DeadlineExceeded
	case ctxOther:
		return t.bond.err
	default:
		return nil
	}
}

// Value returns the value of the nearest ancestor that has one for key.
func (t *deadlineCtx) Value(key any) any {
	if key == &deadlineCtxKey {
		return t
	}
	// The face has an answer to what package context asks for its own sake,
	// and none else. A context that is neither faced nor done has nothing to
	// say to that.
	if t.state.Load() != ctxLive {
		if v := t.std().Value(key); v != nil {
			return v
		}
	}
	return t.parent.Value(key)
}

// left returns how long it is until the deadline.
func (t *deadlineCtx) left() time.Duration {
	if t.timer == nil {
		return time.Until(t.deadline)
	}
	return t.deadline.Sub(t.timer.svc.Now())
}

// String is as that of package context's.
func (t *deadlineCtx) String() string {
	name := reflect.TypeOf(t.parent).String
	if s, ok := t.parent.(fmt.Stringer); ok {
		name = s.String
	}
	return name() + ".WithDeadline(" + t.deadline.String() + " [" + t.left().String() + "])"
}
