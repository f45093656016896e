package timer

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/detent-go/detent/internal/shard"
	"github.com/detent-go/detent/internal/slab"
	"github.com/detent-go/detent/internal/suite"
)

// The model test runs scripts of operations on a queue that keeps virtual time,
// and on a naive model of it: a map from handles to what is pending. FuzzQueue
// runs the same.

// manualService returns a service on virtual time, and its group, which moves
// the time.
func manualService(slack time.Duration, shards int) (*Service, *shard.Group) {
	g := shard.NewGroup(shard.Config{Manual: true, Shards: shards})
	return newService(&engine{group: g}, slack), g
}

// modelEntry is a pending value of the model.
type modelEntry struct {
	value    uint64
	deadline int64 // never before
	limit    int64 // and, once looked at, not after
}

// queueModel is a queue and the model of it.
type queueModel struct {
	t      testing.TB
	slack  time.Duration
	polled bool

	group   *shard.Group
	q       *Queue[uint64]
	buf     []Expired[uint64]
	pending map[Handle]modelEntry
	handles []Handle // of all that were ever added, the latest few

	values                  uint64
	stopped, reset, expired uint64
	closed                  bool
}

func newQueueModel(t testing.TB, slack time.Duration, shards int, polled bool) *queueModel {
	s, g := manualService(slack, shards)
	m := &queueModel{t: t, slack: slack, polled: polled, group: g, pending: make(map[Handle]modelEntry)}
	handler := m.deliver
	if polled {
		handler = nil
	}
	m.q = NewQueue(s, handler)
	m.buf = make([]Expired[uint64], 64)
	return m
}

func (m *queueModel) now() int64 { now, _ := m.group.Now(); return now }

func (m *queueModel) fatalf(format string, args ...any) {
	m.t.Helper()
	m.t.Fatalf("slack %v, polled %t, at %d ns: %s", m.slack, m.polled, m.now(), fmt.Sprintf(format, args...))
}

// deliver checks a batch against the model.
func (m *queueModel) deliver(batch []Expired[uint64]) {
	m.t.Helper()
	if len(batch) == 0 || len(batch) > queueBatch && !m.polled {
		m.fatalf("a batch of %d", len(batch))
	}
	now := m.now()
	for _, x := range batch {
		e, ok := m.pending[x.Handle]
		switch {
		case !ok:
			m.fatalf("value %d delivered, which is not pending", x.Value)
		case e.value != x.Value:
			m.fatalf("value %d delivered under the handle of %d", x.Value, e.value)
		case now < e.deadline:
			m.fatalf("value %d delivered %d ns early", x.Value, e.deadline-now)
		case now > e.limit && !m.polled:
			m.fatalf("value %d delivered %d ns after its slack", x.Value, now-e.limit)
		}
		delete(m.pending, x.Handle)
		m.expired++
	}
	// A handler may do anything to its queue.
	for _, x := range batch {
		switch {
		case m.polled || m.closed:
		case x.Value%7 == 0:
			m.add(time.Duration(x.Value) * time.Millisecond)
		case x.Value%7 == 1:
			m.stop(m.pick(int(x.Value)))
		case x.Value%7 == 2:
			m.resetTo(m.pick(int(x.Value)), time.Minute, false)
		}
	}
}

// entry is what the model expects of a value added or reset now.
func (m *queueModel) entry(value uint64, d time.Duration) modelEntry {
	at := deadline(d, m.now())
	slack := int64(m.slack)
	if m.slack == AutoSlack {
		slack = int64(max(d, 0)) >> 10
	}
	return modelEntry{value, at, min(at, math.MaxInt64-slack) + slack}
}

func (m *queueModel) note(h Handle, value uint64, d time.Duration) {
	m.t.Helper()
	if h == (Handle{}) {
		m.fatalf("Add returned the zero Handle")
	}
	if _, ok := m.pending[h]; ok || slices.Contains(m.handles, h) {
		m.fatalf("handle %v returned again", h)
	}
	m.pending[h] = m.entry(value, d)
	if m.handles = append(m.handles, h); len(m.handles) > 500 {
		m.handles = m.handles[100:]
	}
}

func (m *queueModel) add(d time.Duration) {
	m.t.Helper()
	m.values++
	m.note(m.q.Add(d, m.values), m.values, d)
}

func (m *queueModel) addAt(d time.Duration) {
	m.t.Helper()
	m.values++
	at, d := m.at(d)
	m.note(m.q.AddAt(at, m.values), m.values, d)
}

// at returns the time d from now, or lastTime, and how long that is.
func (m *queueModel) at(d time.Duration) (time.Time, time.Duration) {
	ns := min(deadline(d, m.now()), lastTime)
	return m.q.timeAt(ns), time.Duration(ns - m.now())
}

// pick returns a handle: of something that is or was in the queue, or none.
func (m *queueModel) pick(n int) Handle {
	if len(m.handles) == 0 || n%16 == 15 {
		return Handle{}
	}
	return m.handles[n%len(m.handles)]
}

func (m *queueModel) stop(h Handle) {
	m.t.Helper()
	_, want := m.pending[h]
	if got := m.q.Stop(h); got != want {
		m.fatalf("Stop(%v) = %t, want %t", h, got, want)
	}
	if want {
		delete(m.pending, h)
		m.stopped++
	}
}

func (m *queueModel) resetTo(h Handle, d time.Duration, absolute bool) {
	m.t.Helper()
	e, want := m.pending[h]
	var got bool
	if absolute {
		var at time.Time
		at, d = m.at(d)
		got = m.q.ResetAt(h, at)
	} else {
		got = m.q.Reset(h, d)
	}
	if got != want {
		m.fatalf("Reset(%v, %v) = %t, want %t", h, d, got, want)
	}
	if want {
		m.pending[h] = m.entry(e.value, d)
		m.reset++
	}
}

// horizon is as far as the model's time goes, and lastTime as far as its absolute
// times do: those after the year 2157 have no monotonic reading.
const (
	horizon  = int64(60 * 365 * 24 * time.Hour)
	lastTime = int64(100 * 365 * 24 * time.Hour)
)

// advance moves the time on by d, and checks that what was to be delivered by
// then has been.
func (m *queueModel) advance(d time.Duration) {
	m.t.Helper()
	to := min(m.now()+int64(d), horizon)
	m.group.Advance(to)
	if m.polled {
		m.poll(len(m.buf))
	}
	m.overdue()
}

// step moves the time on to when the queue next has something to do.
func (m *queueModel) step() {
	m.t.Helper()
	if !m.polled {
		if at, ok := m.group.Next(); ok && at < horizon {
			m.group.Advance(max(at, m.now()))
		}
		m.overdue()
		return
	}
	at, ok := m.q.Next()
	if ok != (len(m.pending) > 0) {
		m.fatalf("Next says %t with %d pending", ok, len(m.pending))
	}
	if !ok {
		return
	}
	ns := m.group.TimeOf(at)
	for _, e := range m.pending {
		if ns > max(e.limit, m.now()) {
			m.fatalf("Next is %d ns after the slack of %d", ns-e.limit, e.value)
		}
	}
	if ns < horizon {
		m.group.Advance(max(ns, m.now()))
		m.poll(len(m.buf))
	}
}

// poll polls until nothing is due, n values at a time.
func (m *queueModel) poll(n int) {
	m.t.Helper()
	for rounds := 0; ; rounds++ {
		if got := m.q.Poll(m.buf[:n]); got > 0 {
			m.deliver(m.buf[:got])
			clear(m.buf[:got])
			continue
		}
		if at, ok := m.q.Next(); !ok || m.group.TimeOf(at) > m.now() {
			break
		}
		if rounds > 1_000_000 {
			m.fatalf("Next says that something is due, and Poll queueNever returns it")
		}
	}
	m.overdue()
}

// overdue checks that nothing is pending that should have been delivered.
func (m *queueModel) overdue() {
	m.t.Helper()
	for _, e := range m.pending {
		if m.now() >= e.limit && m.now() > e.deadline {
			m.fatalf("value %d is pending %d ns after its slack", e.value, m.now()-e.limit)
		}
	}
}

// check compares counts, and looks inside.
func (m *queueModel) check() {
	m.t.Helper()
	if got := m.q.Len(); got != len(m.pending) {
		m.fatalf("Len = %d, want %d", got, len(m.pending))
	}
	st := m.q.Stats()
	for _, c := range []struct {
		name      string
		got, want uint64
	}{
		{"Started", st.Started, m.values},
		{"Stopped", st.Stopped, m.stopped},
		{"Reset", st.Reset, m.reset},
		{"Fired", st.Fired, m.expired},
		{"Pending", st.Pending, uint64(len(m.pending))},
		{"Lateness.Count", st.Lateness.Count(), m.expired},
	} {
		if c.got != c.want {
			m.fatalf("Stats.%s = %d, want %d", c.name, c.got, c.want)
		}
	}
	if m.polled && st.Wakeups != 0 {
		m.fatalf("a polled queue was woken %d times", st.Wakeups)
	}
	for _, s := range m.q.shards {
		s.checkInvariants(m.t)
	}
}

// checkInvariants fails the test if the shard is not in order.
func (s *queueShard[T]) checkInvariants(t testing.TB) {
	t.Helper()
	s.lock()
	defer s.unlock()
	if s.draining || s.arming || s.wantArm {
		t.Fatalf("draining %t, arming %t, wantArm %t between operations", s.draining, s.arming, s.wantArm)
	}
	if s.closed {
		return
	}
	pending := s.pendingLocked()
	noted := make(map[uint32]bool)
	for at := s.clock.head; at != s.clock.tail; at++ {
		if i, n := s.notedLocked(at); n != nil && n.Where == whereNoted {
			noted[i] = true
		}
	}
	if n := s.wheel.Len() + s.heap.Len() + len(noted); n != pending {
		t.Fatalf("%d filed or noted, %d pending", n, pending)
	}
	if len(noted) > 0 && s.armed > (s.clock.base>>coarseShift+1)<<coarseShift {
		t.Fatalf("%d noted at %d, but armed for %d", len(noted), s.clock.base, s.armed)
	}
	if n := s.nodes.Len(); n < pending {
		t.Fatalf("%d nodes, %d pending", n, pending)
	}
	if len(s.vals) != s.nodes.Chunks() || len(s.gens) != len(s.vals) || len(s.first) != len(s.vals) {
		t.Fatalf("%d chunks, with %d of values, %d of generations", s.nodes.Chunks(), len(s.vals), len(s.gens))
	}
	for at := range s.vals {
		if (s.vals[at] == nil) != (s.gens[at] == nil) {
			t.Fatalf("chunk %d has values or generations alone", at)
		}
	}
	s.heap.Each(func(i uint32, n *slab.Node) { s.checkNode(t, i, n) })
	s.wheel.Each(func(i uint32, n *slab.Node) { s.checkNode(t, i, n) })
	if s.noArm {
		return
	}
	// A slot with very many timers wants to be entered ahead of its first tick;
	// the shard is armed for that at a wake-up, not whenever the slot grows.
	ahead := int64(pending/512+1) << shard.TickShift
	if at, _ := s.nextLocked(); s.armed-ahead > at {
		t.Fatalf("armed for %d, wanted at %d", s.armed, at)
	}
}

func (s *queueShard[T]) checkNode(t testing.TB, i uint32, n *slab.Node) {
	t.Helper()
	switch {
	case n.Where == 0:
		t.Fatalf("node %d is filed, and says nowhere", i)
	case s.vals[i/slab.ChunkSize] == nil:
		t.Fatalf("node %d has no value", i)
	case n.Where >= 2 && n.Grid != shard.Exact && n.Tick > queueTick(n.Deadline, n.Grid):
		t.Fatalf("node %d is filed under tick %d, after its deadline %d", i, n.Tick, n.Deadline)
	}
}

// finish closes the queue, and checks that nothing is delivered any more.
func (m *queueModel) finish() {
	m.t.Helper()
	m.check()
	if err := m.q.Close(); err != nil {
		m.fatalf("Close: %v", err)
	}
	m.closed = true
	clear(m.pending)
	for _, h := range m.handles {
		m.stop(h)
	}
	if pending := m.group.Stats().Pending; pending != 0 {
		m.fatalf("%d timers of the service pending after Close", pending)
	}
	if m.polled {
		if n := m.q.Poll(m.buf); n != 0 {
			m.fatalf("Poll = %d after Close", n)
		}
	}
	m.group.Advance(horizon)
	if n := m.q.Len(); n != 0 {
		m.fatalf("Len = %d after Close", n)
	}
}

const maxModelValues = 5000

// modelDurations are those at which something changes: between heap and wheel,
// slots, levels, guessed and read times.
var modelDurations = func() []time.Duration {
	d := []time.Duration{
		math.MinInt64, -1, 0, 1, 999, time.Microsecond, 50 * time.Microsecond,
		time.Millisecond, 66 * time.Millisecond, 68 * time.Millisecond, 530 * time.Millisecond, time.Second,
		time.Duration(guessMinAuto) - 1, time.Duration(guessMinAuto), 30 * time.Second,
		time.Hour, 30 * 24 * time.Hour, 100 * 365 * 24 * time.Hour, math.MaxInt64 - 1, math.MaxInt64,
	}
	for bit := shard.TickShift; bit < 62; bit += 3 {
		for _, off := range []time.Duration{-1, 0, 1} {
			d = append(d, 1<<bit+off)
		}
	}
	return d
}()

var modelSlacks = []time.Duration{AutoSlack, 0, 100 * time.Microsecond, time.Millisecond, 20 * time.Millisecond, time.Second}

// run runs a script, three bytes at a time: what to do, and two numbers.
func (m *queueModel) run(script []byte) {
	m.t.Helper()
	for len(script) >= 3 {
		op, a, b := script[0], int(script[1]), int(script[2])
		script = script[3:]
		d := modelDurations[a%len(modelDurations)]
		switch op % 12 {
		case 0, 1:
			m.add(d)
		case 2:
			m.addAt(d)
		case 3, 4:
			m.stop(m.pick(b))
		case 5, 6:
			m.resetTo(m.pick(b), d, false)
		case 7:
			m.resetTo(m.pick(b), d, true)
		case 8:
			// A burst: fast enough for times to be guessed, with pauses that make
			// the guesses wrong.
			for k := range 4 * b {
				if m.values > maxModelValues {
					break // The model is slow.
				}
				m.add(d + time.Duration(k%7)*time.Millisecond*time.Duration(a%3))
				if k%64 == a%64 {
					m.group.Advance(min(m.now()+int64(b)<<10, horizon))
				}
			}
		case 9:
			m.advance(time.Duration(b) << (a % 56))
		case 10:
			for range 1 + b%8 {
				m.step()
			}
		case 11:
			if m.polled {
				m.poll(1 + b%len(m.buf))
			} else {
				m.check()
			}
		}
	}
	m.check()
}

func TestQueueModel(t *testing.T) {
	rounds := suite.Scale(20)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	for _, slack := range modelSlacks {
		for _, polled := range []bool{false, true} {
			r := rand.New(rand.NewPCG(seed, uint64(slack)))
			t.Run(fmt.Sprintf("slack=%v/polled=%t", slack, polled), func(t *testing.T) {
				for round := range rounds {
					m := newQueueModel(t, slack, 1+round%3, polled)
					script := make([]byte, 3*(50+r.IntN(400)))
					for i := range script {
						script[i] = byte(r.Uint32())
					}
					m.run(script)
					m.finish()
				}
			})
		}
	}
}
