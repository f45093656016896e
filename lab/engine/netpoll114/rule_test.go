package netpoll114

import (
	"testing"
	"time"

	"github.com/detent-go/detent/internal/suite"
	"github.com/detent-go/detent/lab/engine"
	"github.com/detent-go/detent/lab/internal/enginetest"
)

// stillSystem starts no thread, and counts what it was asked for.
type stillSystem struct {
	fakeSystem
	threads int
}

func (s *stillSystem) start(name string, _ func()) {
	if name == "lab-m" {
		s.threads++
	}
}

// TestWhoIsWoken: who starts a timer tells the netpoller alone if somebody is there, each
// time that it would wait too long; and a thread if nobody is, unless the timer's P has one.
func TestWhoIsWoken(t *testing.T) {
	start := func(e *Engine, d time.Duration) { e.Start(d, 0, func(any, uintptr) {}, nil, 0) }
	world := func() (*Engine, *stillSystem) {
		s := new(stillSystem)
		return newEngine(1, s), s
	}

	e, s := world()
	e.lastpoll.Store(0)
	e.pollUntil.Store(engine.Deadline(time.Minute))
	start(e, time.Hour)
	if s.poked != 0 {
		t.Errorf("%d breaks for a timer that is due after the wait", s.poked)
	}
	for range 100 {
		start(e, time.Second)
	}
	if s.poked != 100 || s.threads != 0 {
		t.Errorf("%d breaks, %d threads for 100 timers that are due during the wait", s.poked, s.threads)
	}
	e.pollUntil.Store(0)
	start(e, time.Hour)
	if s.poked != 101 {
		t.Error("no break for a wait whose end is not known yet")
	}

	for what, want := range map[uint64]int{idle: 1, inTask: 1, inUse: 0} {
		e, s := world()
		e.procs[0].become(what)
		start(e, time.Hour)
		if s.threads != want || s.poked != 0 {
			t.Errorf("%d threads, %d breaks with the P in state %d, want %d and none", s.threads, s.poked, what, want)
		}
	}
}

// TestOverdue: a timer of which nobody was told fires, for sysmon finds it.
func TestOverdue(t *testing.T) {
	e, err := New(2)
	enginetest.SkipUnsupported(t, err)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	fired := make(chan struct{})
	n := &node{e: e, f: func(any, uintptr) { close(fired) }, when: engine.Deadline(time.Millisecond)}
	n.state.must(noStatus, waiting)
	e.procs[1].timers.add(n)
	e.startMonitor()
	suite.Await(t, "the timer fired", fired)
}

// TestSleeps: a wait that a break has ended before it began is none.
func TestSleeps(t *testing.T) {
	e := newEngine(1, new(stillSystem))
	e.netpollBreak()
	e.wait(engine.Deadline(time.Hour))
	if c := [...]uint64{e.epolls.Load(), e.epollSleeps.Load()}; c != [...]uint64{1, 0} || e.unread.Load() != 0 {
		t.Errorf("%d waits, %d of them sleeps, %d breaks left; want 1, 0, 0", c[0], c[1], e.unread.Load())
	}
	for range 20 {
		e.netpollBreak()
	}
	e.wait(engine.Deadline(time.Hour))
	e.wait(engine.Deadline(time.Hour))
	if e.epolls.Load() != 3 || e.epollSleeps.Load() != 0 || e.unread.Load() != 0 {
		t.Errorf("%d waits, %d of them sleeps, %d breaks left; want 3, 0, 0", e.epolls.Load(), e.epollSleeps.Load(), e.unread.Load())
	}
}

// TestSleepUntil: what sysmon sleeps until is the earliest of all heaps, as it has
// been reset to.
func TestSleepUntil(t *testing.T) {
	e := newEngine(3, new(stillSystem))
	if until := e.sleepUntil(); until != engine.Infinite {
		t.Errorf("without timers: %d, want never", until)
	}
	var nodes []*node
	for i, p := range e.procs {
		e.pick = func() *timers { return &p.timers }
		for k := range 10 {
			nodes = append(nodes, e.Start(time.Duration(1+i+k)*time.Hour, 0, func(any, uintptr) {}, nil, 0).(*node))
		}
	}
	if until := e.sleepUntil(); until != nodes[0].when {
		t.Errorf("with timers: %d, want %d", until, nodes[0].when)
	}
	when := nodes[0].when - int64(time.Minute)
	nodes[25].rearm(when, 0, 0, e.pick)
	if until := e.sleepUntil(); until != when {
		t.Errorf("after a reset to earlier: %d, want %d", until, when)
	}
}
