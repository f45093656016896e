package timer

import (
	"math"
	"testing"
	"time"

	"github.com/detent-go/detent/internal/shard"
	"github.com/detent-go/detent/internal/slab"
)

// These look inside a queue, or put it into a state that takes too long to get
// into from outside.

// A node is used again and again, and never has a handle that it had before, nor
// the next one.
func TestQueueGenerations(t *testing.T) {
	svc, _ := manualService(AutoSlack, 1)
	q := NewQueue[int](svc, nil)
	const n = 2000
	seen := make(map[Handle]bool)
	var last Handle
	for k := range n {
		h := q.Add(time.Hour, k)
		if k > 0 && h.index != last.index {
			t.Fatal("the node was not used again: this test needs another way")
		}
		if seen[h] || h == (Handle{}) {
			t.Fatalf("handle %v after %d others", h, k)
		}
		seen[h] = true
		for _, stale := range []Handle{last, {h.index, h.word, h.mark + 1}, {h.index, h.word + 1, h.mark}} {
			if q.Stop(stale) || q.Reset(stale, time.Hour) {
				t.Fatalf("handle %v names something, the node's is %v", stale, h)
			}
		}
		if !q.Stop(h) {
			t.Fatal("Stop of a pending value = false")
		}
		next := Handle{h.index, h.word, h.mark + 1}
		if next.mark&math.MaxUint8 == 0 {
			next = Handle{h.index, wordOf(h.index, q.shards[0].nodes.Node(h.index)), h.mark &^ math.MaxUint8}
		}
		if q.Stop(next) || q.Reset(next, time.Hour) {
			t.Fatal("a handle that has not been given out names something")
		}
		last = h
	}
	for h := range seen {
		if q.Stop(h) {
			t.Errorf("stale handle %v names something", h)
		}
	}
}

// Handles stay stale when the chunk of their node goes and another takes its
// place.
func TestQueueChunksGo(t *testing.T) {
	const n = 40 * slab.ChunkSize
	svc, g := manualService(AutoSlack, 1)
	q := NewQueue(svc, func([]Expired[int]) {})
	s := q.shards[0]
	seen := make(map[Handle]bool)
	var old []Handle
	for range 4 {
		handles := make([]Handle, n)
		for k := range handles {
			handles[k] = q.Add(time.Minute, k)
			if seen[handles[k]] {
				t.Fatalf("handle %v returned again", handles[k])
			}
			seen[handles[k]] = true
		}
		for _, h := range old {
			if q.Stop(h) || q.Reset(h, time.Hour) {
				t.Fatal("a stale handle names something")
			}
		}
		for _, h := range handles {
			if !q.Stop(h) {
				t.Fatal("Stop of a pending value = false")
			}
		}
		// The last timers' guessed times are put right now; their chunks are gone.
		if s.clock.since == s.clock.tail {
			t.Error("no times have been guessed")
		}
		gone := 0
		for _, v := range s.vals {
			if v == nil {
				gone++
			}
		}
		if gone == 0 {
			t.Error("no chunk has been let go")
		}
		now, _ := g.Now()
		g.Advance(now + int64(time.Second))
		s.checkInvariants(t)
		old = handles
	}
}

// Times are guessed only where values come fast and something makes sure that
// the guesses are put right; and a shard that has guessed is woken for it once or
// twice, then no more.
func TestQueueGuesses(t *testing.T) {
	for _, c := range []struct {
		name    string
		slack   time.Duration
		polled  bool
		d       time.Duration
		every   time.Duration
		guesses bool
	}{
		{"auto", AutoSlack, false, 5 * time.Second, time.Microsecond, true},
		{"short", AutoSlack, false, 5*time.Second - 1, time.Microsecond, false},
		{"slow", AutoSlack, false, time.Minute, 3 * time.Microsecond, false},
		{"polled", AutoSlack, true, time.Minute, 0, false},
		{"exact", 0, false, math.MaxInt64, 0, false},
		{"fixed", 17 * time.Millisecond, false, 17 * time.Millisecond, time.Microsecond, true},
		{"fixedShort", 17 * time.Millisecond, false, 16 * time.Millisecond, 0, false},
		{"fixedFine", 16 * time.Millisecond, false, time.Minute, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			svc, g := manualService(c.slack, 1)
			handler := func([]Expired[int]) {}
			if c.polled {
				handler = nil
			}
			q := NewQueue(svc, handler)
			s := q.shards[0]
			g.Advance(int64(time.Hour))
			guessed := 0
			for k := range 1000 {
				h := q.Add(c.d, k)
				if s.nodes.Node(h.index).Kind == kindGuessed {
					guessed++
				}
				now, _ := g.Now()
				g.Advance(now + int64(c.every))
				q.Stop(h)
			}
			if (guessed > 0) != c.guesses {
				t.Errorf("%d times were guessed, want some: %t", guessed, c.guesses)
			}
			before := q.Stats().Wakeups
			now, _ := g.Now()
			g.Advance(now + int64(20*time.Second))
			woken := q.Stats().Wakeups - before
			if limit := uint64(2); woken > limit {
				t.Errorf("woken %d times after the last was stopped, want %d at most", woken, limit)
			}
			t.Logf("%d of 1000 guessed, %d wake-ups before, %d after", guessed, before, woken)
		})
	}
}

// A value whose start was guessed is put off by what the guess was wrong. The
// service's group moves the time here without waking anybody.
func TestQueueGuessOverrun(t *testing.T) {
	svc, g := manualService(AutoSlack, 1)
	var at []int64
	q := NewQueue(svc, func(batch []Expired[int64]) {
		now, _ := g.Now()
		for _, x := range batch {
			if now < x.Value {
				t.Errorf("delivered %d ns early", x.Value-now)
			}
			at = append(at, now)
		}
	})
	s := q.shards[0]
	const d = 10 * time.Second
	for k := range 1000 {
		now, _ := g.Now()
		h := q.Add(d, now+int64(d))
		if n := s.nodes.Node(h.index); n.Kind == kindGuessed && k%32 == 31 {
			// More than was guessed, and before the shard is woken.
			g.Advance(now + queueLag + 12345)
		}
	}
	g.Advance(int64(time.Hour))
	if len(at) != 1000 {
		t.Errorf("%d delivered, want 1000", len(at))
	}
}

// What is guessed is put off once, to the time at which that was settled, however
// often and however it was noted.
func TestQueueGuessSettled(t *testing.T) {
	const d = time.Hour
	svc, g := manualService(time.Second, 1) // fixed: an absolute deadline reads no clock
	q := NewQueue(svc, func([]Expired[int]) {})
	s := q.shards[0]
	deadline := func(h Handle) int64 { return s.nodes.Node(h.index).Deadline }

	filed := q.Add(time.Minute, 0)
	for s.clock.credit == 0 {
		q.Stop(q.Add(d, 0))
	}
	given, at := q.Add(d, 1), q.timeAt(int64(time.Hour))
	reset, once := q.Add(d, 2), q.Add(d, 3)
	q.Stop(q.Add(d, 5))
	reused := q.Add(d, 5)
	q.Stop(reused)
	reused = q.AddAt(q.timeAt(int64(d)), 5)
	q.Stop(q.Add(d, 6))
	again := q.Add(d, 6)
	q.Reset(filed, d)
	q.Reset(filed, d)
	q.Reset(reset, d)
	q.ResetAt(given, at)
	if s.clock.since == s.clock.tail {
		t.Fatal("nothing has been guessed")
	}
	now, _ := g.Now()
	now += 2 * queueLag
	g.Advance(now)
	q.Next() // This reads the clock.
	if s.clock.since != s.clock.tail || s.clock.head != s.clock.tail {
		t.Error("guesses or notes are left")
	}
	for what, h := range map[string]Handle{"filed": filed, "reset": reset, "once": once, "again": again} {
		if got, want := deadline(h), now+int64(d); got != want {
			t.Errorf("%s: deadline %d, want %d: off by %d", what, got, want, got-want)
		}
	}
	for what, h := range map[string]Handle{"given": given, "reused": reused} {
		if got, want := deadline(h), int64(d); got != want {
			t.Errorf("%s: deadline %d, want %d: off by %d", what, got, want, got-want)
		}
	}
	s.checkInvariants(t)

	for s.clock.credit == 0 {
		q.Stop(q.Add(d, 0))
	}
	early := q.Add(d, 4)
	if s.nodes.Node(early.index).Where != whereNoted {
		t.Fatal("nothing has been guessed")
	}
	q.ResetAt(early, q.timeAt(1))
	g.Advance(now + int64(time.Second))
	if q.Stop(early) {
		t.Error("a value that was guessed, and then reset to the past, is still pending")
	}
}

// The shard's timer may fire while somebody is delivering: to read the clock, or
// because it was set before.
func TestQueueWokenTwice(t *testing.T) {
	svc, g := manualService(AutoSlack, 1)
	depth, delivered := 0, 0
	var q *Queue[int]
	q = NewQueue(svc, func(batch []Expired[int]) {
		if depth++; depth > 1 {
			t.Error("calls of the handler overlap")
		}
		delivered += len(batch)
		for range 3 * queueEpoch {
			q.Add(time.Minute, 0)
		}
		if c := &q.shards[0].clock; c.since == c.tail {
			t.Error("nothing has been guessed")
		}
		q.shards[0].woken()
		if c := &q.shards[0].clock; c.head != c.tail || c.credit > 0 {
			t.Errorf("after a wake-up there are %d notes and a credit of %d", c.tail-c.head, c.credit)
		}
		depth--
	})
	for k := range 600 {
		q.Add(0, k)
	}
	g.Advance(1)
	if delivered != 600 {
		t.Errorf("%d delivered, want 600", delivered)
	}
	q.shards[0].checkInvariants(t)
}

// Who adds at once whatever he is given still gets other values.
func TestQueueFair(t *testing.T) {
	const others, renewals = 1000, 20_000
	svc, g := manualService(AutoSlack, 1)
	q := NewQueue[int](svc, nil)
	for range others {
		q.Add(10*time.Second, 1) // for the wheel
	}
	g.Advance(int64(time.Minute))
	for range 2 * queueBatch {
		q.Add(-1, 0) // for the heap
	}
	buf := make([]Expired[int], queueBatch)
	renewed, delivered := 0, 0
	for delivered < others {
		for _, x := range buf[:q.Poll(buf)] {
			if x.Value > 0 {
				delivered++
			} else {
				renewed++
				q.Add(-1, 0)
			}
		}
		if renewed > renewals {
			t.Fatalf("%d of %d delivered after %d renewals of what is due at once", delivered, others, renewed)
		}
	}
}

// The end of time is a time.
func TestQueueNever(t *testing.T) {
	for _, slack := range []time.Duration{0, AutoSlack, time.Second} {
		for name, add := range map[string]func(q *Queue[int]){
			"Add":   func(q *Queue[int]) { q.Add(math.MaxInt64, 0) },
			"Reset": func(q *Queue[int]) { q.Reset(q.Add(time.Second, 0), math.MaxInt64) },
		} {
			svc, g := manualService(slack, 1)
			q := NewQueue[int](svc, nil)
			g.Advance(1)
			add(q)
			g.Advance(horizon)
			if n := q.Poll(make([]Expired[int], 1)); n != 0 {
				t.Errorf("%s, slack %v: 1<<63-1 is due", name, slack)
			}
			if _, ok := q.Next(); !ok || q.Len() != 1 {
				t.Errorf("%s, slack %v: 1<<63-1 is not pending", name, slack)
			}
		}
	}
}

// Who finds somebody else setting the shard's timer leaves it to him.
func TestQueueArmingAtOnce(t *testing.T) {
	svc, g := manualService(0, 1)
	delivered := 0
	q := NewQueue(svc, func(batch []Expired[int]) { delivered += len(batch) })
	s := q.shards[0]
	q.Add(time.Second, 1)
	s.arming = true // as somebody is who has released the lock to set the timer
	q.Add(time.Millisecond, 2)
	if !s.rearm {
		t.Error("an earlier deadline is not noted for who sets the timer")
	}
	s.lock()
	s.arming, s.wantArm = false, true
	s.unlockAndArm()
	g.Advance(int64(time.Millisecond))
	if delivered != 1 {
		t.Errorf("%d delivered, want 1", delivered)
	}
}

// The work of one call of Poll is bounded, by more than it takes to fill the
// buffer if there is no other work.
func TestQueuePollBounded(t *testing.T) {
	svc, g := manualService(AutoSlack, 1)
	q := NewQueue[int](svc, nil)
	const n = 50_000
	for k := range n {
		q.Add(40*time.Second+time.Duration(k)*time.Millisecond, k)
	}
	g.Advance(int64(2 * time.Minute))
	buf := make([]Expired[int], n)
	calls, got, none := 0, 0, 0
	for ; got < n; calls++ {
		at, ok := q.Next()
		if !ok || g.TimeOf(at) > int64(2*time.Minute) {
			t.Fatalf("Next = %v, %t with %d due", at, ok, n-got)
		}
		k := q.Poll(buf[:16])
		if got += k; k == 0 {
			none++
		}
		if calls > n {
			t.Fatal("Poll does nothing")
		}
	}
	if none == 0 || calls > n/16+n*8/pollExtra {
		t.Errorf("%d calls of Poll for %d values, %d of them without any; want %d at most, some without", calls, n, none, n/16+n*8/pollExtra)
	}

	for k := range 1000 {
		q.Add(-1, k)
	}
	if k := q.Poll(buf[:999]); k != 999 {
		t.Errorf("Poll = %d with 1000 due, want 999", k)
	}
}

// The tick of a deadline does not begin before it, and no later than its grid
// allows.
func TestQueueTick(t *testing.T) {
	for _, grid := range []uint8{0, 1, coarseGrid, 18} {
		for _, at := range []int64{0, 1, 2, 1<<shard.TickShift - 1, 1 << shard.TickShift, 1<<shard.TickShift + 1, 1e18, 1<<62 - 1} {
			tick := queueTick(at, grid)
			begins := tick << shard.TickShift
			if begins < at || begins-at >= 1<<(shard.TickShift+grid) || tick%(1<<grid) != 0 {
				t.Errorf("queueTick(%d, %d) = %d", at, grid, tick)
			}
		}
		if tick := queueTick(queueNever-1, grid); tick<<shard.TickShift < 0 || tick < 1<<(62-shard.TickShift) {
			t.Errorf("queueTick(queueNever, %d) = %d", grid, tick)
		}
	}
}
