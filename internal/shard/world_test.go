package shard

import (
	"math/rand/v2"
	"testing"
)

// world is a manual group next to the model, and the script that both play.
type world struct {
	t  testing.TB
	g  *Group
	in script

	all  []*record       // in order of start
	live map[int]*record // those pending

	inside   bool    // a callback is running
	to       int64   // where the last Advance goes
	starting *record // is being started
	closing  bool
	closed   bool
	settled  bool // nothing has been started or changed since the last Advance
	turn     int  // number of Advances that have ended

	started, stopped, reset, fired, late uint64
	slept                                int // sleepers woken by Close
}

const (
	mostLive = 3000 // timers pending at once
	mostRuns = 100  // ticks of one ticker in one Advance
)

func (w *world) now() int64 { return w.g.clock() }

// pick takes a timer from the script: often a recent one, often one pending.
func (w *world) pick() *record {
	if len(w.all) == 0 {
		return nil
	}
	b := w.in.byte()
	from, n := 0, len(w.all)
	if b < 128 && n > 16 {
		from, n = n-16, 16
	} else if n > 256 {
		b = b<<8 | w.in.byte()
	}
	return w.all[from+int(b)%n]
}

// spec takes what a timer is started with from the script.
func (w *world) spec() (*record, *Timer) {
	r := &record{w: w, id: len(w.all), pending: true, deadline: w.time(), grid: w.grid()}
	b := w.in.byte()
	r.kind = Kind(b % 4)
	if r.kind == Tick && b%8 < 4 {
		r.kind = Call // fewer tickers
	}
	if r.kind == Tick {
		r.period = 1 + w.in.word()<<(b/8)
		if w.inside {
			r.period = max(r.period, (w.to-w.now())/50)
		}
	}
	return r, r.timer(b&0x40 != 0)
}

// timer returns what the timer is started with.
func (r *record) timer(asFunc bool) *Timer {
	st := &Timer{Deadline: r.deadline, Grid: r.grid, Kind: r.kind, Target: r, Period: r.period}
	if asFunc && r.kind != Tick {
		st.Func, st.Target = r.fire, nil
	}
	r.w.starting = r
	return st
}

// add notes that r has been started. A Send or Sleep that was due then may have
// been fired in passing.
func (w *world) add(r *record, s *Shard, h Handle) {
	w.starting = nil
	if r.pending != (h != 0) {
		w.t.Fatalf("timer %d was started as handle %x, pending %v", r.id, h, r.pending)
	}
	r.s, r.h = s, h
	w.all = append(w.all, r)
	w.started++
	if r.pending {
		w.live[r.id] = r
		r.file(w.now())
	}
}

// end notes that r is not pending any more.
func (w *world) end(r *record) {
	r.pending = false
	delete(w.live, r.id)
}

func (w *world) start() {
	if len(w.live) >= mostLive {
		return
	}
	r, st := w.spec()
	s := w.g.shards[int(w.in.byte())%len(w.g.shards)]
	now := max(0, w.now()-w.in.byte()%4*tick) // may have been read a while ago
	var h Handle
	var ok bool
	if len(w.g.shards) == 1 {
		s, h, ok = w.g.Start(st, now)
	} else {
		s.LockToStart()
		h, ok = s.startLocked(st, now)
		s.endStart(st)
	}
	if ok == w.closed {
		w.t.Fatalf("Start = %v, closed %v", ok, w.closed)
	}
	if ok {
		w.add(r, s, h)
	}
}

func (w *world) stop(r *record) {
	if r == nil {
		return
	}
	if got := r.s.Stop(r.h); got != r.pending {
		w.t.Fatalf("Stop of timer %d = %v, want %v", r.id, got, r.pending)
	}
	if r.pending {
		w.end(r)
		w.stopped++
	}
}

func (w *world) push() {
	r := w.pick()
	if r == nil {
		return
	}
	deadline, grid := w.time(), w.grid()
	known := r.known()
	got := r.s.Push(r.h, deadline, grid)
	switch {
	case !r.pending:
		if got {
			w.t.Fatalf("Push of timer %d = true, which is not pending", r.id)
		}
		return
	case known:
		if want := r.pushable(deadline, grid); got != want {
			w.t.Fatalf("Push of timer %d, filed under %d, from %d, grid %d, to %d, grid %d = %v, want %v",
				r.id, r.filed, r.deadline, r.grid, deadline, grid, got, want)
		}
	default:
		r.loose, r.since = true, w.now()
	}
	if got {
		r.deadline, r.grid = deadline, grid
		w.reset++
	}
}

// resetLocked plays ResetLocked, which keeps a pending timer's handle or gives
// it a new one.
func (w *world) resetLocked() {
	r := w.pick()
	if r == nil {
		return
	}
	fresh, st := w.spec()
	r.s.LockToStart()
	h, pending, ok := r.s.ResetLocked(r.h, st, w.now())
	r.s.EndReset(st)
	if ok == w.closed || pending != r.pending {
		w.t.Fatalf("ResetLocked of timer %d = %x, %v, %v; pending %v, closed %v", r.id, h, pending, ok, r.pending, w.closed)
	}
	switch {
	case pending && h == r.h:
		r.deadline, r.grid = st.Deadline, st.Grid
		r.file(w.now())
		w.reset++
	case ok:
		w.replace(r, fresh, h)
	}
}

// replace notes that fresh has been started in the place of r.
func (w *world) replace(r, fresh *record, h Handle) {
	w.add(fresh, r.s, h)
	if r.pending {
		w.end(r)
		w.started--
		w.reset++
	}
}

// restart plays RestartLocked, which gives a new handle in any case.
func (w *world) restart() {
	r := w.pick()
	if r == nil {
		return
	}
	fresh, st := w.spec()
	r.s.LockToStart()
	h, ok := r.s.RestartLocked(r.h, st, w.now())
	r.s.EndReset(st)
	if ok == w.closed {
		w.t.Fatalf("RestartLocked = %v, closed %v", ok, w.closed)
	}
	if !ok {
		return
	}
	w.replace(r, fresh, h)
}

// crowd starts many timers about one time.
func (w *world) crowd() {
	at, spread, grid := w.time(), int64(1)<<(w.in.byte()%32), w.grid()
	for k := range min(4*w.in.byte(), int64(mostLive-len(w.live))) {
		r := &record{w: w, id: len(w.all), pending: true, deadline: saturate(at, k*104729%spread), grid: grid, kind: Kind(k % 3)}
		s, h, ok := w.g.Start(r.timer(k%2 == 0), w.now())
		if !ok {
			w.t.Fatal("Start on an open group failed")
		}
		w.add(r, s, h)
	}
}

// advance moves virtual time on, no further than tickers allow.
func (w *world) advance() {
	to := w.now()
	switch b := w.in.byte(); b % 4 {
	case 0:
		to = max(to, w.time())
	default:
		if next, ok := w.g.Next(); ok {
			to = max(to, saturate(next, b/4%3)-1)
		}
	}
	// Tickers must not fire for ever: they are stopped, or time moves less far.
	for _, r := range w.all {
		if n := (to - w.now()) / mostRuns; r.pending && r.kind == Tick && r.period < n {
			if w.in.byte()%2 == 0 {
				to = w.now() + r.period*mostRuns
			} else {
				w.stop(r)
			}
		}
	}
	to = min(to, max(lastTime, w.now()))
	w.to = to
	w.g.Advance(to)
	if w.closed {
		return
	}
	if w.now() != to {
		w.t.Fatalf("Advance(%d) left the time at %d", to, w.now())
	}
	w.turn++
	w.settled = true
	if len(w.live) < 100 || w.turn%16 == 0 {
		w.checkAll()
	}
}

// close ends the group: sleepers wake, and nothing fires any more.
func (w *world) close() {
	sleepers := 0
	for _, r := range w.live {
		if r.kind == Sleep {
			sleepers++
		}
	}
	w.slept, w.closing = 0, true
	if w.g.Close() == w.closed {
		w.t.Fatalf("Close = %v, closed before %v", !w.closed, w.closed)
	}
	w.closing, w.closed = false, true
	if w.slept != sleepers {
		w.t.Fatalf("Close woke %d sleepers, want %d", w.slept, sleepers)
	}
	for _, r := range w.live {
		w.end(r)
	}
	w.checkStats(0)
}

func (w *world) op() {
	w.settled = false
	switch op := w.in.byte(); {
	case op < 70:
		w.start()
	case op < 110:
		w.push()
	case op < 135:
		w.resetLocked()
	case op < 150:
		w.restart()
	case op < 185:
		w.stop(w.pick())
	case op < 190:
		if !w.closed {
			w.crowd()
		}
	case op < 192:
		w.checkStale()
	case op == 255:
		if w.in.byte() == 255 {
			w.close()
		}
	case !w.inside:
		w.advance()
	}
}

// play plays a script.
func play(t testing.TB, data []byte) {
	w := &world{t: t, in: data, live: map[int]*record{}}
	w.g = NewGroup(Config{Shards: 1 + int(w.in.byte())%3, Manual: true})
	w.g.Advance(min(lastTime, w.in.word()<<(w.in.byte()%48)))
	for len(w.in) > 0 {
		w.op()
	}
	// What is left comes in its time: without tickers, up to the end of time.
	for _, r := range w.all {
		if r.pending && r.kind == Tick {
			w.stop(r)
		}
	}
	if !w.closed {
		w.g.Advance(lastTime)
		w.turn++
		w.settled = true
		w.checkAll()
		w.close()
	}
	w.checkStale()
}

func TestModel(t *testing.T) {
	seed := seed(t)
	scripts := 400
	if testing.Short() || race { // one goroutine is nothing for the race detector
		scripts = 80
	}
	for k := range scripts {
		rng := rand.New(rand.NewPCG(seed, uint64(k)))
		data := make([]byte, 1<<(6+k%8))
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		play(t, data)
	}
}

func FuzzShard(f *testing.F) {
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 4096 {
			t.Skip("long scripts are the random test's")
		}
		play(t, data)
	})
}
