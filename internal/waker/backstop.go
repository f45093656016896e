package waker

import (
	"math"
	"time"
)

// never is the time of nothing armed.
const never = math.MaxInt64

// far is how far ahead a deadline may lie and still be given to the kernel, in
// nanoseconds. A later one is left to whoever arms next.
const far = int64(100 * 365 * 24 * time.Hour)

// Backstop calls a function in a goroutine of its own when a deadline has
// passed. Its methods are for the holder of the shard lock.
type Backstop struct {
	wake func()
	t    *time.Timer // nil before the first Arm
}

// NewBackstop returns a backstop that calls wake. It starts nothing.
func NewBackstop(wake func()) *Backstop { return &Backstop{wake: wake} }

// Arm makes the backstop fire at the given time of rt.Now, instead of when it
// was last armed for. The current time is now.
func (b *Backstop) Arm(at, now int64) {
	d := time.Duration(max(at-now, 0))
	if b.t == nil {
		b.t = time.AfterFunc(d, b.wake)
		return
	}
	b.t.Reset(d)
}

// Disarm keeps the backstop from firing, unless it already has.
func (b *Backstop) Disarm() {
	if b.t != nil {
		b.t.Stop()
	}
}
