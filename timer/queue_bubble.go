package timer

import "time"

// queueBubble is the clock of a queue that was made inside a testing/synctest
// bubble, and the timer that wakes it: one of package time, on the bubble's
// time.
type queueBubble struct {
	base time.Time   // time 0 of the queue's clock; without a monotonic reading
	t    *time.Timer // of whoever has set arming; nil before its first use
}

// now returns the time of the queue's clock. It returns false outside of bubbles:
// only inside has time.Now no monotonic reading.
func (b *queueBubble) now() (int64, bool) {
	t := time.Now()
	if t != t.Round(0) {
		return 0, false
	}
	return int64(t.Sub(b.base)), true
}

func (b *queueBubble) set(at int64, wake func()) {
	now, _ := b.now()
	d := time.Duration(max(at-now, 0))
	if b.t == nil {
		b.t = time.AfterFunc(d, wake)
		return
	}
	b.t.Reset(d)
}

func (b *queueBubble) stop() {
	if b.t != nil {
		b.t.Stop()
	}
}

// stay panics, for the method named op, if the queue was made inside a bubble
// and the caller is not in one.
func (q *Queue[T]) stay(op string) {
	if q.bubble == nil {
		return
	}
	if _, ok := q.bubble.now(); !ok {
		q.strayed(op)
	}
}

// strayed panics, for the method named op, because it was called across the
// border of a bubble.
func (q *Queue[T]) strayed(op string) {
	if q.bubble != nil {
		panic("timer: " + op + " called outside of the synctest bubble that the Queue was made in")
	}
	panic("timer: " + op + " called in a synctest bubble on a Queue made outside")
}
