package netpoll114

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/detent-go/detent/internal/suite"
	"github.com/detent-go/detent/lab/engine"
)

// fakeSystem has an explorer's actors for threads, and no time passes in it: who
// waits does so until it is woken.
type fakeSystem struct {
	x     *explorer
	poked int
}

func (s *fakeSystem) start(name string, f func()) {
	if name == "lab-m" {
		s.x.add(f)
	} // sysmon has nothing to say about tasks that do not block
}

func (s *fakeSystem) newNote() note { return &fakeNote{x: s.x} }
func (s *fakeSystem) acquire() bool { return true }
func (s *fakeSystem) release()      {}

func (s *fakeSystem) interrupt() bool {
	s.poked++
	return true
}

func (s *fakeSystem) wait(ms int) (interrupts int) {
	if ms > 0 && s.x != nil {
		s.x.wait(true, func() bool { return s.poked > 0 })
	}
	interrupts = min(s.poked, 16)
	s.poked -= interrupts
	return interrupts
}

type fakeNote struct {
	x     *explorer
	woken bool
}

func (n *fakeNote) Clear()  { n.woken = false }
func (n *fakeNote) Wakeup() { n.woken = true }

func (n *fakeNote) Sleep(time.Duration) bool {
	n.x.wait(true, func() bool { return n.woken })
	return true
}

// TestEveryWakeup has two goroutines start and reset timers while the threads of
// the engine go to rest, in every order with few preemptions. When all rest, what is
// due has fired, and somebody waits in the netpoller until the first of the others
// is due, or for less.
func TestEveryWakeup(t *testing.T) {
	type world struct {
		x     *explorer
		e     *Engine
		nodes []*node
		due   int // started or reset to be due at once
		done  int
	}
	fire := func(arg any, _ uintptr) { arg.(*world).done++ }
	start := func(w *world, d time.Duration) *node {
		n := w.e.Start(d, 0, fire, w, 0).(*node)
		w.nodes = append(w.nodes, n)
		return n
	}
	ops := map[string]func(w *world){
		"an hour": func(w *world) { start(w, time.Hour) },
		"earlier": func(w *world) { start(w, 2*time.Hour).Reset(30 * time.Minute) },
		"due":     func(w *world) { w.due++; start(w, 0) },
		"reset":   func(w *world) { w.due++; start(w, time.Hour).Reset(0) },
		"settled": func(w *world) { w.due++; n := start(w, time.Hour); w.x.settle(); n.Reset(0) },
		"again":   func(w *world) { w.due++; n := start(w, time.Hour); n.Stop(); w.x.settle(); n.Reset(0) },
		"task":    func(w *world) { w.due++; w.e.Go(func() { w.done++ }) },
	}
	names := slices.Sorted(func(yield func(string) bool) {
		for name := range ops {
			if !yield(name) {
				return
			}
		}
	})
	runs := 0
	for _, procs := range []int{1, 2} {
		for i, first := range names {
			for _, second := range names[i:] {
				w := new(world)
				x := &explorer{preemptions: 1}
				if procs == 1 && !testing.Short() && !suite.Race {
					x.preemptions = 2
				}
				x.explore(t, fmt.Sprintf("%d P's, %s, %s", procs, first, second), func() []func() {
					*w = world{x: x, e: newEngine(procs, &fakeSystem{x: x})}
					// The heaps are those of the two goroutines in turn.
					w.e.pick = func() *timers {
						return &w.e.procs[slices.Index(x.actors, x.current)%procs].timers
					}
					return []func(){func() { ops[first](w) }, func() { ops[second](w) }}
				}, func() error {
					if err := restful(w.e, w.nodes); err != nil || w.done != w.due {
						return fmt.Errorf("%d fired, want %d; %w", w.done, w.due, err)
					}
					return nil
				})
				runs += x.runs
			}
		}
	}
	t.Logf("%d runs", runs)
}

// restful reports what is wrong with an engine of which all threads rest.
func restful(e *Engine, nodes []*node) error {
	first := int64(engine.Infinite)
	for _, n := range nodes {
		switch n.state.load() {
		case waiting:
			first = min(first, n.when)
		case modifiedEarlier, modifiedLater:
			first = min(first, n.next)
		}
	}
	for _, p := range e.procs {
		if err := checkTimers(&p.timers); err != nil {
			return err
		}
		if p.runq.len() > 0 {
			return fmt.Errorf("%d tasks are left", p.runq.len())
		}
	}
	if len(e.global) > 0 {
		return fmt.Errorf("%d tasks are left in the queue of all", len(e.global))
	}
	if e.nspinning.Load() != 0 || int(e.nidle.Load()) != len(e.procs) {
		return fmt.Errorf("%d threads spin, %d P's are idle", e.nspinning.Load(), e.nidle.Load())
	}
	if first == engine.Infinite {
		return nil
	}
	if e.lastpoll.Load() != 0 {
		return fmt.Errorf("a timer is due at %d, and nobody waits", first)
	}
	if until := e.pollUntil.Load(); until == 0 || until > first {
		return fmt.Errorf("a timer is due at %d, and the netpoller waits until %d", first, until)
	}
	return nil
}
