package shard

import (
	"testing"

	"github.com/detent-go/detent/internal/slab"
)

// record is what the model knows of one timer: that of one Start, and of the
// resets that kept it pending.
type record struct {
	w  *world
	id int
	s  *Shard
	h  Handle

	kind     Kind
	deadline int64
	grid     uint8
	period   int64
	pending  bool

	// Where the timer is filed, which a push does not change: in the heap or
	// the wheel, under this limit; and the times between which the engine
	// comes to it there, which are the same but for a timer with some slack in
	// the heap, that may come up at the wake-up of another one.
	inHeap bool
	filed  int64
	lo, hi int64
	turn   int // world.turn when it was filed

	// loose says that the timer was pushed at a moment at which the model does
	// not know whether the engine had just come to it, and filed it anew: in a
	// callback of the same instant, or with slack in the heap.
	loose bool
	since int64
}

// file notes that the engine files the timer at the given time.
func (r *record) file(now int64) {
	r.loose = false
	r.turn = r.w.turn
	r.inHeap = r.grid >= heapGrid
	r.filed = limit(r.deadline, r.grid)
	r.hi = max(r.filed, now)
	r.lo = r.hi
	if r.inHeap {
		r.lo = max(r.deadline, now)
	}
}

// known brings r up to what the engine must have done by now, and reports
// whether the model knows where the timer is filed. It does not while a callback
// runs, of timers that the engine comes to at the same instant.
func (r *record) known() bool {
	w, now := r.w, r.w.now()
	idle := !w.inside && r.turn == w.turn // no Advance since it was filed
	switch {
	case r.loose:
		return false
	case r.deadline <= r.lo || now < r.lo || idle:
		return true // It would fire, or the engine has not come to it.
	case r.deadline > r.hi && (r.hi < now || r.hi == now && !w.inside):
		r.file(r.hi)
		return true
	default:
		return false
	}
}

// bounds returns the times between which the timer has to fire. Not pushed, or
// pushed and already filed anew, it is exactly its limit or, in the heap, from
// its deadline to its limit. Pushed, it is one of these, by where it was filed
// and what it was pushed to; and in any case not after its new limit or, where
// that has passed, the time of the push.
func (r *record) bounds() (lo, hi int64) {
	due := limit(r.deadline, r.grid)
	switch {
	case r.loose:
		return r.deadline, max(due, r.since)
	case r.deadline <= r.lo:
		return r.lo, r.hi
	case r.lo < r.hi || r.grid >= heapGrid:
		return r.deadline, max(r.hi, due)
	default:
		return due, due // Found at r.hi, and filed anew.
	}
}

// pushable says what Push should return, as far as the model knows.
func (r *record) pushable(deadline int64, grid uint8) bool {
	if urgent(grid) && !urgent(r.grid) {
		return false
	}
	due := limit(deadline, grid)
	if r.inHeap || r.filed == 0 {
		return due >= limit(r.deadline, r.grid)
	}
	return due>>TickShift >= r.filed>>TickShift
}

// Fire is called for a timer that was started with a Target. Its handle is 0
// when the timer was due when it was started, and when the shard is closed.
func (r *record) Fire(s *Shard, h Handle) {
	if h != 0 && (s != r.s || h != r.h) || h == 0 && r.w.starting != r && !r.w.closing {
		r.w.t.Fatalf("timer %d fired as handle %x of shard %d, is %x of %d", r.id, h, s.Index, r.h, r.s.Index)
	}
	r.fire()
}

// fire compares what the engine does with what the model expects.
func (r *record) fire() {
	w, now := r.w, r.w.now()
	switch {
	case !r.pending || w.closed || now < r.deadline && !w.closing:
		w.t.Fatalf("timer %d, deadline %d, fired at %d: pending %v, closed %v", r.id, r.deadline, now, r.pending, w.closed)
	case w.closing:
		if r.kind != Sleep {
			w.t.Fatalf("timer %d, kind %d, fired by a close", r.id, r.kind)
		}
		r.pending = false
		w.slept++
		return
	case w.starting == r:
		if r.kind != Send && r.kind != Sleep {
			w.t.Fatalf("timer %d, kind %d, fired by its start", r.id, r.kind)
		}
	default:
		if lo, hi := r.bounds(); now < lo || now > hi {
			w.t.Fatalf("timer %d, deadline %d, grid %d, fired at %d, want %d to %d (filed %d to %d, loose %v)",
				r.id, r.deadline, r.grid, now, lo, hi, r.lo, r.hi, r.loose)
		}
	}
	w.fired++
	w.late += uint64(now - r.deadline)
	if r.kind == Tick {
		r.deadline = saturate(r.deadline, saturate((now-r.deadline)/r.period*r.period, r.period))
		r.file(now)
	} else {
		w.end(r)
	}
	if r.kind == Call { // the others are fired under the lock
		w.inside = true
		if b := w.in.byte(); b%4 == 1 { // not for the zeros after the script's end
			for range 1 + b/4%3 {
				w.op()
			}
		}
		w.inside = false
	}
}

// checkAll compares the whole state: nothing is overdue, the counts are right,
// and pending timers and no others are in the shards.
func (w *world) checkAll() {
	w.t.Helper()
	if w.closed {
		return
	}
	now := w.now()
	nodes := map[*Shard]map[uint32]bool{}
	for _, s := range w.g.shards {
		nodes[s] = checkShard(w.t, s)
	}
	next, some := w.g.Next()
	for _, r := range w.live {
		r.known()
		_, hi := r.bounds()
		if !nodes[r.s][r.h.Index()] || !r.s.nodes.Current(r.h) {
			w.t.Fatalf("timer %d is pending, and in no place", r.id)
		}
		if hi != never && (!some || next > hi) {
			w.t.Fatalf("the next wake-up is at %d, %v; timer %d has to fire at %d", next, some, r.id, hi)
		}
		if w.settled && hi <= now {
			w.t.Fatalf("timer %d should have fired at %d, now is %d", r.id, hi, now)
		}
	}
	w.checkStats(uint64(len(w.live)))
}

func (w *world) checkStats(pending uint64) {
	w.t.Helper()
	st := w.g.Stats()
	got := [...]uint64{st.Started, st.Stopped, st.Reset, st.Fired, st.Pending, st.Lateness.Count, st.Lateness.Sum}
	want := [...]uint64{w.started, w.stopped, w.reset, w.fired, pending, w.fired, w.late}
	if got != want {
		w.t.Fatalf("Started, Stopped, Reset, Fired, Pending, Lateness.Count, .Sum are\n%d, want\n%d", got, want)
	}
}

// checkStale lets every handle of a timer that is not pending do its worst.
func (w *world) checkStale() {
	for _, r := range w.all[max(0, len(w.all)-200):] {
		if r.pending {
			continue
		}
		if r.s.Stop(r.h) || r.s.Push(r.h, never, Exact) {
			w.t.Fatalf("timer %d, not pending, was stopped or pushed", r.id)
		}
	}
	if s := w.g.shards[0]; s.Stop(0) || s.Push(0, never, Exact) {
		w.t.Fatal("the zero handle was stopped or pushed")
	}
}

// TestZeroHandle: the zero Handle names no timer of a shard with timers.
func TestZeroHandle(t *testing.T) {
	g := NewGroup(Config{Shards: 1, Manual: true})
	_, h, _ := g.Start(&Timer{Deadline: 1, Grid: Exact, Func: func() {}}, 0)
	s := g.shards[0]
	if s.Push(0, never, Exact) {
		t.Error("Push(0) = true")
	}
	s.Lock()
	current := s.CurrentLocked(slab.Handle(0))
	s.Unlock()
	if current {
		t.Fatal("the zero handle is current") // and Stop would panic
	}
	if s.Stop(0) || !s.Stop(h) {
		t.Error("Stop takes the zero handle for a timer, or a timer for none")
	}
}
