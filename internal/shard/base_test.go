package shard

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/detent-go/detent/internal/rt"
)

// The tests here set a clock that stands in for the wall clock, which is one for the
// whole machine. It goes as fast as monotonic time does, until it is set.

// fakeClock is that clock.
type fakeClock struct{ shift atomic.Int64 }

func (f *fakeClock) read() (int64, bool) {
	now, _ := rt.Now()
	return now + f.shift.Load(), false
}

func (f *fakeClock) now() int64 {
	now, _ := f.read()
	return now
}

const hour = int64(time.Hour)

// newStepping returns a group on a fake clock, closed at the end of the test. The
// group is told that the clock has been set, by set, or left to find out by polling.
func newStepping(t *testing.T, watched bool, onSet func(time.Duration), c Config) (*Group, *fakeClock) {
	f := new(fakeClock)
	f.shift.Store(1000 * hour)
	c.base = &base{clock: Realtime, read: f.read, offset: f.shift.Load, on: OnMove{Set: onSet}, opened: true, retryAt: never, wall: f.shift.Load()}
	c.base.looked, _ = rt.Now()
	c.base.watched.Store(watched)
	g := newReal(t, c)
	for _, s := range g.shards {
		s.starting = true // No timerfd knows this clock.
	}
	return g, f
}

// set sets the clock, and tells the group.
func (f *fakeClock) set(g *Group, by int64) {
	f.shift.Add(by)
	if g.base.watched.Load() {
		g.clockSet()
	}
}

// startOn starts a timer that is due in d, and reports when it fires.
func startOn(t *testing.T, g *Group, f *fakeClock, k Kind, grid uint8, d int64, fired *atomic.Int64) {
	t.Helper()
	deadline := f.now() + d
	_, _, ok := g.Start(&Timer{Deadline: deadline, Grid: grid, Kind: k, Target: target(func(*Shard, Handle) {
		if at := f.now(); at < deadline {
			t.Errorf("kind %d, grid %d: fired %d ns early", k, grid, deadline-at)
		}
		fired.Add(1)
	})}, f.now())
	if !ok {
		t.Fatal("Start on a closed group")
	}
}

// TestSetForward sets the clock to and beyond deadlines: they fire, whether somebody
// tells or not.
func TestSetForward(t *testing.T) {
	for name, watched := range map[string]bool{"told": true, "polled": false} {
		t.Run(name, func(t *testing.T) {
			g, f := newStepping(t, watched, nil, Config{})
			var fired atomic.Int64
			n := int64(0)
			for k := range int64(40) {
				for _, grid := range grids {
					for _, kind := range []Kind{Call, Send, Sleep} {
						startOn(t, g, f, kind, grid, hour+k*1_000_000, &fired)
						n++
					}
				}
			}
			f.set(g, hour)
			eventually(t, "all timers", func() bool { return fired.Load() >= n })
			time.Sleep(2 * time.Millisecond)
			if got := fired.Load(); got != n {
				t.Errorf("%d timers fired %d times", n, got)
			}
		})
	}
}

// TestSetBack sets the clock back before deadlines: nothing fires before the clock
// has come to them again, and everything then. What is started meanwhile, for times
// that have been before, fires at these.
func TestSetBack(t *testing.T) {
	for name, watched := range map[string]bool{"told": true, "polled": false} {
		t.Run(name, func(t *testing.T) {
			g, f := newStepping(t, watched, nil, Config{})
			var old, fresh, first atomic.Int64
			for _, grid := range grids {
				startOn(t, g, f, Call, grid, 0, &first)
			}
			eventually(t, "the first timers", func() bool { return first.Load() == int64(len(grids)) })
			n := int64(0)
			for k := range int64(20) {
				for _, grid := range grids {
					startOn(t, g, f, Call, grid, 30_000_000+k*100_000, &old)
					n++
				}
			}
			f.set(g, -hour)
			for k := range int64(20) {
				for _, grid := range grids {
					startOn(t, g, f, Send, grid, k*1_000_000, &fresh)
				}
			}
			eventually(t, "the timers started since", func() bool { return fresh.Load() == n })
			time.Sleep(50 * time.Millisecond)
			if old.Load() != 0 {
				t.Errorf("%d timers fired early", old.Load())
			}
			f.set(g, hour)
			eventually(t, "the timers from before", func() bool { return old.Load() == n })
		})
	}
}

// TestSetTicks: a ticker keeps to its schedule on a clock that is set, drops the
// ticks that are skipped, and is not silent longer than a period.
func TestSetTicks(t *testing.T) {
	for name, watched := range map[string]bool{"told": true, "polled": false} {
		t.Run(name, func(t *testing.T) {
			g, f := newStepping(t, watched, nil, Config{})
			const period = 3_000_000
			var ticks atomic.Int64
			began, _ := rt.Now()
			first := f.now() + period
			tick := target(func(*Shard, Handle) { ticks.Add(1) })
			s, h, _ := g.Start(&Timer{Deadline: first, Grid: Exact, Kind: Tick, Target: tick, Period: period}, f.now())
			steps := 0
			for _, by := range []int64{0, hour, -hour, -5 * hour, 7 * hour, -period / 2, period / 2, -2 * hour} {
				before := ticks.Load()
				f.set(g, by)
				steps++
				eventually(t, "ticks after a step", func() bool { return ticks.Load() >= before+4 })
				s.Lock()
				n := s.nodes.Node(h.Index())
				n.Lock()
				next := n.Deadline
				n.Unlock()
				s.Unlock()
				if (next-first)%period != 0 {
					t.Errorf("after a step of %d the next tick is at %d, not on the schedule of %d", by, next, first)
				}
			}
			s.Stop(h)
			now, _ := rt.Now()
			if most := (now-began)/period + int64(steps) + 1; ticks.Load() > most {
				t.Errorf("%d ticks in %d ns, want %d at most", ticks.Load(), now-began, most)
			}
		})
	}
}

// TestSetFar: no timer is filed under a limit before its deadline, or a time before that
// to be fired together with others, not even at the end of time.
func TestSetFar(t *testing.T) {
	g, f := newStepping(t, true, nil, Config{Shards: 1})
	s := g.shards[0]
	for _, grid := range grids {
		for _, deadline := range []int64{never, never - 1, maxTick << TickShift, 2000 * hour} {
			var fired atomic.Int64
			startOn(t, g, f, Call, grid, deadline-f.now(), &fired)
			s.Lock()
			limit, from, i := s.heap.Min()
			n := s.nodes.Node(i)
			if limit < n.Deadline || from < n.Deadline {
				t.Errorf("grid %d: due %d, filed from %d to %d", grid, n.Deadline, from, limit)
			}
			h := n.Handle(i)
			s.Unlock()
			s.Stop(h)
		}
	}
}

// TestSetBlocked: that the clock goes back does not keep a callback that blocks from
// being noticed.
func TestSetBlocked(t *testing.T) {
	g, f := newStepping(t, true, nil, Config{Shards: 1})
	release, blocked := make(chan struct{}), make(chan *runner)
	defer close(release)
	s := g.shards[0]
	g.Start(&Timer{Deadline: f.now(), Grid: Exact, Kind: Call, Func: func() {
		s.Lock()
		r := s.runners[0]
		s.Unlock()
		blocked <- r
		<-release
	}}, f.now())
	r := <-blocked
	f.set(g, -hour)
	eventually(t, "the callback to be given up", func() bool {
		s.Lock()
		defer s.Unlock()
		return r.lost
	})
}

// TestSetBackInCallback: a callback sets the clock back, and what was due with it is not
// any more. Nobody looks at that again and again until the clock has come back.
func TestSetBackInCallback(t *testing.T) {
	for name, inline := range map[string]bool{"concurrent": false, "inline": true} {
		t.Run(name, func(t *testing.T) {
			g, f := newStepping(t, true, nil, Config{Shards: 1, Inline: inline})
			s := g.shards[0]
			var calls atomic.Int64
			for range 2 {
				now := f.now()
				g.Start(&Timer{Deadline: now + hour, Grid: Exact, Kind: Call, Func: func() {
					if calls.Add(1) == 1 {
						f.set(g, -2*hour)
					}
				}}, now)
			}
			f.set(g, 2*hour)
			eventually(t, "the callback", func() bool { return calls.Load() > 0 })
			eventually(t, "nobody to be at work", func() bool {
				s.Lock()
				defer s.Unlock()
				return len(s.runners) == 0
			})
			if n := calls.Load(); n != 1 {
				t.Errorf("%d callbacks, though the second was not due any more", n)
			}
		})
	}
}

// alarms notes what a timerfd would be armed for.
type alarms struct {
	at []int64 // guarded by the shard's lock
}

func (a *alarms) Arm(at int64) { a.at = append(a.at, at) }
func (a *alarms) Replace()     {}
func (a *alarms) Close()       {}
func (a *alarms) Wait()        {}

// TestSetArms: when the clock has been set the timerfd is armed anew, even for the
// same time: the set may have made its reader miss the expiry.
func TestSetArms(t *testing.T) {
	g, f := newStepping(t, true, nil, Config{Shards: 1})
	s, a := g.shards[0], new(alarms)
	s.Lock()
	s.precise = a
	s.Unlock()
	var fired atomic.Int64
	startOn(t, g, f, Call, Exact, hour, &fired)
	armed := func() (at []int64) {
		s.Lock()
		defer s.Unlock()
		return slices.Clone(a.at)
	}
	before := armed()
	if len(before) != 1 {
		t.Fatalf("armed for %v, want one deadline", before)
	}
	f.set(g, -1000)
	eventually(t, "the timerfd to be armed again", func() bool {
		return slices.Equal(armed(), []int64{before[0], before[0]})
	})
}

// TestSuspended: on a clock that counts while the system is suspended, of which this
// is a fake, timers fire that have become due meanwhile, coarse ones too.
func TestSuspended(t *testing.T) {
	for name, watched := range map[string]bool{"told": true, "polled": false} {
		t.Run(name, func(t *testing.T) {
			told := false
			g, f := newStepping(t, watched, func(time.Duration) { told = true }, Config{})
			g.base.clock = Boottime
			for _, s := range g.shards {
				s.steps = false
			}
			var fired atomic.Int64
			n := int64(0)
			for _, grid := range grids {
				for _, kind := range []Kind{Call, Send, Sleep} {
					startOn(t, g, f, kind, grid, 2*hour, &fired)
					n++
				}
			}
			f.set(g, 3*hour)
			eventually(t, "all timers", func() bool { return fired.Load() == n })
			if told {
				t.Error("the user has been told that the clock was set")
			}
		})
	}
}

// TestOnSet: every set is told of once, in sum, one call at a time; and none after
// Close.
func TestOnSet(t *testing.T) {
	var sum, calls, inside atomic.Int64
	g, f := newStepping(t, true, func(d time.Duration) {
		if inside.Add(1) != 1 {
			t.Error("two calls at the same time")
		}
		runtime.Gosched()
		sum.Add(int64(d))
		inside.Add(-1)
		if calls.Add(1)%3 == 0 {
			runtime.Goexit()
		}
	}, Config{})
	want := int64(0)
	for k := range int64(200) {
		by := (k%7 - 3) * hour
		f.set(g, by)
		want += by
		f.set(g, leastSet/2) // less than counts, and not on top of the others
		f.set(g, -leastSet/2)
	}
	eventually(t, "all sets to be told of", func() bool {
		g.base.mu.Lock()
		defer g.base.mu.Unlock()
		return !g.base.telling
	})
	if sum.Load() != want {
		t.Errorf("told of %d ns, want %d", sum.Load(), want)
	}
	n := calls.Load()
	f.set(g, leastSet-1)
	g.base.mu.Lock()
	if g.base.telling {
		t.Errorf("a set of %d ns is told of", leastSet-1)
	}
	g.base.mu.Unlock()
	g.Close()
	f.set(g, hour)
	time.Sleep(time.Millisecond)
	if calls.Load() != n {
		t.Errorf("%d calls after Close", calls.Load()-n)
	}
}

// TestOnSetClosed: what has come together while the user was told is not told of any
// more, if the group has been closed meanwhile.
func TestOnSetClosed(t *testing.T) {
	calls, release := make(chan time.Duration, 2), make(chan struct{})
	g, f := newStepping(t, true, func(d time.Duration) { calls <- d; <-release }, Config{})
	f.set(g, hour)
	if got := <-calls; got != time.Duration(hour) {
		t.Errorf("told of %v, want %v", got, time.Duration(hour))
	}
	f.set(g, hour)
	g.Close()
	close(release)
	eventually(t, "the call to return", func() bool {
		g.base.mu.Lock()
		defer g.base.mu.Unlock()
		return !g.base.telling
	})
	if len(calls) != 0 {
		t.Error("told after Close")
	}
}

// TestMoved: whoever follows the clock is called whenever it may have gone apart from
// monotonic time, and what is known of throttling is forgotten: its times were
// others.
func TestMoved(t *testing.T) {
	g, f := newStepping(t, true, nil, Config{})
	moved := make(chan bool, 2)
	g.base.on.Moved = func() { moved <- true }
	for _, by := range []int64{hour, 0} {
		g.throttle.mu.Lock()
		g.throttle.looked = f.now()
		g.throttle.mu.Unlock()
		f.set(g, by)
		<-moved
		g.throttle.mu.Lock()
		if g.throttle.looked != 0 {
			t.Error("a look at the old time counts")
		}
		g.throttle.mu.Unlock()
	}
}

// TestBlameStepped: the parts of a timer's lateness add up to it, whenever the clock
// was set between the times that they are made of.
func TestBlameStepped(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed(t), 0))
	for range 100_000 {
		at := func() int64 { return 1000 + rng.Int64N(100) }
		w := wakeup{armed: at(), running: at(), handed: at(), begun: at(), toldFrom: never}
		deadline := at()
		now := deadline + rng.Int64N(100)
		if rng.IntN(2) == 0 {
			w.toldFrom, w.toldArmed, w.ready = deadline-rng.Int64N(50), at(), min(at(), w.running)
		}
		b := Blame{Told: new(Told)}
		b.record(&w, deadline, deadline+rng.Int64N(20), now)
		sum := b.Slack.Sum + b.Wakeup.Sum + b.Queue.Sum + b.Told.Kernel.Sum + b.Told.Scheduler.Sum
		if int64(sum) != now-deadline {
			t.Fatalf("the parts add up to %d, fired at %d for %d: %+v", sum, now, deadline, w)
		}
	}
}

// TestPolled: who is not told of a set finds it, if it is great enough to be one, and
// takes no drift for one.
func TestPolled(t *testing.T) {
	var sum atomic.Int64
	g, f := newStepping(t, false, func(d time.Duration) { sum.Add(int64(d)) }, Config{})
	for range 5 {
		f.shift.Add(leastSetFound * 4 / 5)
		g.poll()
	}
	g.base.mu.Lock()
	g.base.looked -= hour // An hour of nothing to do.
	g.base.mu.Unlock()
	f.shift.Add(-hour / mostDrift)
	g.poll()
	var fired atomic.Int64
	startOn(t, g, f, Call, Exact, 1_000_000, &fired)
	eventually(t, "a timer", func() bool { return fired.Load() == 1 })
	if sum.Load() != 0 {
		t.Errorf("drift counts as a set of %d ns", sum.Load())
	}
	startOn(t, g, f, Call, Exact, hour, &fired)
	f.shift.Add(2 * leastSetFound)
	eventually(t, "the set to be found", func() bool { return sum.Load() != 0 })
	if sum.Load() != 2*leastSetFound {
		t.Errorf("told of %d ns, want %d", sum.Load(), 2*leastSetFound)
	}
}

// TestSetBeforeWatch: what is set just before there is a watch is found as well.
func TestSetBeforeWatch(t *testing.T) {
	var sum atomic.Int64
	g, f := newStepping(t, false, func(d time.Duration) { sum.Add(int64(d)) }, Config{})
	b := g.base
	b.mu.Lock()
	b.opened, b.offset = false, func() int64 { return f.shift.Add(hour) }
	b.mu.Unlock()
	g.openWatch()
	if !b.watched.Load() {
		t.Skip("no watch on this system or in this build")
	}
	eventually(t, "the set to be told of", func() bool { return sum.Load() >= hour })
}

// steppedModel is timers on a clock that jumps, in the engine and in a list.
type steppedModel struct {
	t   *testing.T
	g   *Group
	rng *rand.Rand
	all []*stepped
	in  bool // a callback is running
}

// stepped is one of its timers.
type stepped struct {
	m        *steppedModel
	s        *Shard
	h        Handle
	kind     Kind
	deadline int64
	grid     uint8
	period   int64
	pending  bool
}

func (r *stepped) Fire(*Shard, Handle) {
	m, now := r.m, r.m.g.clock()
	if !r.pending || now < r.deadline {
		m.t.Errorf("kind %d fired at %d, due %d, pending %v", r.kind, now, r.deadline, r.pending)
	}
	if r.kind == Tick {
		r.deadline += (now-r.deadline)/r.period*r.period + r.period
		return
	}
	r.pending = false
	if r.kind == Call && !m.in && m.rng.IntN(3) == 0 {
		m.in = true
		m.op()
		m.in = false
	}
}

func (m *steppedModel) time() int64 {
	return max(0, m.g.clock()+(m.rng.Int64N(1<<20)-1<<18)<<m.rng.IntN(30))
}

func (m *steppedModel) start(r *stepped) *Timer {
	r.deadline, r.grid = m.time(), []uint8{Exact, Grid(5000), Grid(tick), Grid(1 << 30), Grid(1 << 35)}[m.rng.IntN(5)]
	r.period = 1 + m.rng.Int64N(1<<40)
	if r.kind == Tick {
		r.deadline = min(r.deadline, m.g.clock()+r.period)
	}
	return &Timer{Deadline: r.deadline, Grid: r.grid, Kind: r.kind, Target: r, Period: r.period}
}

func (m *steppedModel) op() {
	now := m.g.clock()
	var r *stepped
	if len(m.all) > 0 {
		r = m.all[m.rng.IntN(len(m.all))]
	}
	switch op := m.rng.IntN(12); {
	case op < 5 || r == nil:
		if len(m.all) > 200 {
			return
		}
		r = &stepped{m: m, kind: []Kind{Call, Send, Tick}[m.rng.IntN(3)], pending: true}
		st := m.start(r)
		r.s = m.g.shards[m.rng.IntN(len(m.g.shards))]
		r.s.LockToStart()
		r.h, _ = r.s.startLocked(st, now)
		r.s.endStart(st)
		m.all = append(m.all, r)
	case op < 7:
		if got := r.s.Stop(r.h); got != r.pending {
			m.t.Fatalf("Stop = %v, pending %v", got, r.pending)
		}
		r.pending = false
	case op < 9 && r.kind != Tick && r.pending:
		d, g := m.time(), r.grid
		if r.s.Push(r.h, d, g) {
			r.deadline = d
		}
	case op < 10:
		st, was := m.start(r), r.pending
		r.pending = true
		r.s.LockToStart()
		pending := was
		if r.kind == Tick {
			r.h, _ = r.s.RestartLocked(r.h, st, now)
		} else {
			r.h, pending, _ = r.s.ResetLocked(r.h, st, now)
		}
		r.s.EndReset(st)
		if pending != was {
			m.t.Fatalf("ResetLocked says pending %v, want %v", pending, was)
		}
	case m.in:
	case op < 11:
		m.set(m.time())
	default:
		to := now + m.rng.Int64N(1<<40)
		m.g.Advance(to)
		m.check()
	}
}

// set makes the clock jump.
func (m *steppedModel) set(to int64) {
	m.g.manual.now.Store(to)
	for _, r := range m.all {
		if r.pending && r.kind == Tick && r.deadline-to > r.period {
			r.deadline -= (r.deadline - to - 1) / r.period * r.period
		}
	}
	for _, s := range m.g.shards {
		s.resync()
	}
	m.g.Advance(to) // What callbacks have started since may be due, too.
	m.check()
}

// check compares: what must have fired has, and the rest is filed.
func (m *steppedModel) check() {
	m.t.Helper()
	now, pending := m.g.clock(), 0
	for _, r := range m.all {
		if !r.pending {
			continue
		}
		pending++
		if due := max(limitOf(r.deadline, r.grid), r.deadline); due <= now {
			m.t.Fatalf("kind %d, grid %d, due %d, limit %d, has not fired at %d", r.kind, r.grid, r.deadline, due, now)
		}
		n := r.s.nodes.Node(r.h.Index())
		if n.Deadline != r.deadline || r.kind == Tick && r.deadline-now > r.period+1 {
			m.t.Fatalf("kind %d, due %d, is filed for %d, period %d, at %d", r.kind, r.deadline, n.Deadline, r.period, now)
		}
	}
	for _, s := range m.g.shards {
		checkShard(m.t, s)
		if s.wheel.Len() != 0 {
			m.t.Fatal("a timer in the wheel")
		}
	}
	if got := m.g.Pending(); got != uint64(pending) {
		m.t.Fatalf("%d pending, want %d", got, pending)
	}
}

// TestSteppedModel plays random operations on a clock that jumps forth and back.
func TestSteppedModel(t *testing.T) {
	seed := seed(t)
	for k := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, k))
		g := NewGroup(Config{Shards: 1 + int(k%3), Manual: true, base: &base{clock: Realtime}})
		g.base.watched.Store(true)
		g.read = g.manual.read
		m := &steppedModel{t: t, g: g, rng: rng}
		g.manual.now.Store(1 << 50)
		for range 300 {
			if m.op(); t.Failed() {
				t.FailNow()
			}
		}
		g.Close()
	}
}
