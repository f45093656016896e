package netpoll114

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/detent-go/detent/internal/suite"
)

// noTasks is spawn where no node has a task.
func noTasks(task) { panic("a task") }

// ledger keeps account of a node: of what it was told, and what it did.
type ledger struct {
	n        *node
	deadline []int64 // by seq
	armed    int     // starts, and Rearms that were false
	fired    int
	stopped  int  // Stops that were true
	periodic bool // it was armed with a period: it may fire more often than that
	now      int64
	err      error
}

func newLedger() *ledger {
	l := new(ledger)
	l.n = &node{arg: l, f: func(arg any, seq uintptr) {
		l := arg.(*ledger)
		l.fired++
		if when := l.deadline[seq]; when > l.now && l.err == nil {
			l.err = fmt.Errorf("fired at %d for the arming of number %d, which is due at %d", l.now, seq, when)
		}
	}}
	return l
}

func (l *ledger) stop() {
	if l.n.stop() {
		l.stopped++
	}
}

func (l *ledger) rearm(when, period int64, ts *timers) {
	seq := uintptr(len(l.deadline))
	l.deadline = append(l.deadline, when)
	l.periodic = l.periodic || period > 0
	armed, _, ok := l.n.rearm(when, period, seq, func() *timers { return ts })
	if !armed && ok {
		l.armed++
	}
}

// check compares the account with the node's state, which must be one that lasts.
func (l *ledger) check() error {
	if l.err != nil {
		return l.err
	}
	s := l.n.state.load()
	want := 0
	switch s {
	case waiting, modifiedEarlier, modifiedLater:
		want = 1
	case noStatus, removed, deleted:
	default:
		return fmt.Errorf("the timer is left %v", s)
	}
	if !l.periodic && l.armed-l.fired-l.stopped != want {
		return fmt.Errorf("armed %d times, fired %d, stopped %d, and now it is %v", l.armed, l.fired, l.stopped, s)
	}
	return nil
}

// checkTimers looks at a heap that nobody uses now.
func checkTimers(ts *timers) error {
	var dead, earlier int
	for i, n := range ts.heap {
		if n.timers != ts {
			return fmt.Errorf("the node at %d is of another heap", i)
		}
		if parent := (i - 1) / arity; i > 0 && ts.heap[parent].when > n.when {
			return fmt.Errorf("the node at %d is due at %d, its parent at %d", i, n.when, ts.heap[parent].when)
		}
		switch s := n.state.load(); s {
		case deleted:
			dead++
		case modifiedEarlier:
			earlier++
		case waiting, modifiedLater:
		default:
			return fmt.Errorf("the node at %d is %v", i, s)
		}
	}
	first := int64(0)
	if len(ts.heap) > 0 {
		first = ts.heap[0].when
	}
	if ts.first.Load() != first || int(ts.count.Load()) != len(ts.heap) || int(ts.deleted.Load()) != dead || int(ts.adjust.Load()) != earlier {
		return fmt.Errorf("first %d, count %d, deleted %d, adjust %d; want %d, %d, %d, %d",
			ts.first.Load(), ts.count.Load(), ts.deleted.Load(), ts.adjust.Load(), first, len(ts.heap), dead, earlier)
	}
	return nil
}

// watchChanges makes each change of state that is none of follows fail the test,
// and counts those that were made.
func watchChanges(t *testing.T) map[[2]status]int {
	seen := map[[2]status]int{}
	watch = func(from, to status) {
		seen[[2]status{from, to}]++
		for _, s := range follows[from] {
			if s == to {
				return
			}
		}
		t.Errorf("a timer went from %v to %v", from, to)
	}
	t.Cleanup(func() { watch = nil })
	return seen
}

// TestAlone compares random operations on many timers, of one goroutine and by a
// clock of its own, with a table: what is due fires, nothing else does.
func TestAlone(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	watchChanges(t)
	for range suite.Scale(300) {
		var heaps [2]timers
		ledgers := make([]*ledger, 1+r.IntN(300))
		when := make([]int64, len(ledgers)) // 0 for not armed
		for i := range ledgers {
			ledgers[i] = newLedger()
		}
		now := int64(1)
		for range 3000 {
			i := r.IntN(len(ledgers))
			l := ledgers[i]
			ts := &heaps[r.IntN(len(heaps))]
			switch r.IntN(8) {
			case 0, 1, 2:
				at := now + r.Int64N(1000)
				if r.IntN(4) == 0 {
					at = now + r.Int64N(1_000_000)
				}
				armed := l.armed
				l.rearm(at, 0, ts)
				if was := l.armed == armed; was != (when[i] != 0) {
					t.Fatalf("Rearm said %v of a timer that is due at %d", was, when[i])
				}
				when[i] = at
			case 3, 4:
				stopped := l.stopped
				l.stop()
				if was := l.stopped > stopped; was != (when[i] != 0) {
					t.Fatalf("Stop said %v of a timer that is due at %d", was, when[i])
				}
				when[i] = 0
			default:
				now += r.Int64N(200)
				for j := range ledgers {
					ledgers[j].now = now
				}
				for k := range heaps {
					if _, next, _ := heaps[k].check(now, r.IntN(2) == 0, noTasks); next != 0 && next <= now {
						t.Fatalf("at %d the next is due at %d", now, next)
					}
				}
				for j, l := range ledgers {
					if when[j] != 0 && when[j] <= now {
						if l.fired--; l.fired < 0 {
							t.Fatalf("at %d the timer of %d has not fired", now, when[j])
						}
						l.armed--
						when[j] = 0
					}
					if l.fired != 0 {
						t.Fatalf("at %d a timer fired that is due at %d", now, when[j])
					}
				}
			}
			if i == 0 {
				for k := range heaps {
					if err := checkTimers(&heaps[k]); err != nil {
						t.Fatal(err)
					}
				}
				if err := l.check(); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// TestEveryOrder puts a timer into each state, and has two goroutines do anything to
// it while a third looks after the heap, in every order with up to three preemptions.
func TestEveryOrder(t *testing.T) {
	const now, soon, later, far = 100, 50, 200, 300
	setups := map[string]func(l *ledger, ts *timers){
		"new":     func(*ledger, *timers) {},
		"due":     func(l *ledger, ts *timers) { l.rearm(soon, 0, ts) },
		"pending": func(l *ledger, ts *timers) { l.rearm(later, 0, ts) },
		"ticker":  func(l *ledger, ts *timers) { l.rearm(soon, 1000, ts) },
		"deleted": func(l *ledger, ts *timers) { l.rearm(later, 0, ts); l.stop() },
		"removed": func(l *ledger, ts *timers) { l.rearm(later, 0, ts); l.stop(); ts.check(now, true, noTasks) },
		"earlier": func(l *ledger, ts *timers) { l.rearm(far, 0, ts); l.rearm(soon, 0, ts) },
		"later":   func(l *ledger, ts *timers) { l.rearm(soon, 0, ts); l.rearm(far, 0, ts) },
	}
	type op struct {
		name string
		do   func(l *ledger, ts *timers)
	}
	ops := []op{
		{"Stop", func(l *ledger, _ *timers) { l.stop() }},
		{"Reset(due)", func(l *ledger, ts *timers) { l.rearm(soon-1, 0, ts) }},
		{"Reset(later)", func(l *ledger, ts *timers) { l.rearm(far+1, 0, ts) }},
	}
	seen := watchChanges(t)
	runs := 0
	for name, setup := range setups {
		for i, first := range ops {
			for _, second := range ops[i:] {
				for _, fillers := range []int{0, 2} {
					x := &explorer{preemptions: 3}
					if testing.Short() || suite.Race {
						x.preemptions = 1
					}
					var l *ledger
					var a, b *timers
					start := func() []func() {
						l, a, b = newLedger(), new(timers), new(timers)
						l.now = now
						for k := range fillers {
							f := newLedger()
							f.now = now
							f.rearm(later+int64(k)-1, 0, a)
						}
						setup(l, a)
						return []func(){
							func() { first.do(l, a) },
							func() { second.do(l, b) },
							func() { a.check(now, true, noTasks) },
						}
					}
					x.explore(t, fmt.Sprintf("%s, %s, %s, %d others", name, first.name, second.name, fillers), start, func() error {
						for _, ts := range []*timers{a, b} {
							if err := checkTimers(ts); err != nil {
								return err
							}
						}
						err := l.check()
						if s := l.n.state.load(); err == nil && first.name == "Stop" && second.name == "Stop" && s != noStatus && s != removed && s != deleted {
							err = fmt.Errorf("stopped twice, the timer is %v", s)
						}
						if err == nil {
							// What is armed fires in the end.
							l.now = 10 * far
							l.n.period = 0
							a.check(l.now, true, noTasks)
							b.check(l.now, true, noTasks)
							if err = l.check(); err == nil && l.n.state.load() != noStatus && l.n.state.load() != removed {
								err = fmt.Errorf("the timer is %v in the end", l.n.state.load())
							}
						}
						return err
					})
					runs += x.runs
				}
			}
		}
	}
	t.Logf("%d runs", runs)
	for from, tos := range follows {
		for _, to := range tos {
			change := [2]status{status(from), to}
			switch change {
			case [2]status{noStatus, waiting}, [2]status{modifying, removed}:
				// Start, and a Reset after Close.
			default:
				if seen[change] == 0 {
					t.Errorf("no timer went from %v to %v", change[0], change[1])
				}
			}
		}
	}
}
