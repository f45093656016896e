package netpoll114

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
)

// An explorer runs a few goroutines (actors) step by step, one at a time, in every
// order there is with few preemptions: a step ends where others could see what has
// been done, which is where the code under test calls step or pause. A preemption
// is a change to another actor where the present one could have gone on; bugs of
// ordering show with one or two of them.
type explorer struct {
	preemptions int // the most in one run
	runs        int

	// The decisions of the present run: what was chosen among how many.
	path []decision
	at   int // the next one

	actors  []*actor
	current *actor
	changes int  // steps, but for those from one pause to the next
	over    bool // the run's actors are to end
}

type decision struct{ chosen, of int }

type actor struct {
	resume  chan struct{}
	yielded chan struct{}
	done    bool
	until   func() bool // it can go on when this is true; nil for always
	rests   bool        // it may stay where it is for ever
	settles bool        // it waits for the others to rest
	pauses  bool        // it waits for a change by others,
	seen    int         // after this one
	panic   any
}

// explore tries what is named so: it calls setup for each run, runs the actors that it returns in one more
// order, and calls check when none can go on.
func (x *explorer) explore(t *testing.T, what string, setup func() []func(), check func() error) {
	t.Helper()
	defer func() { hook = nil }()
	for more := true; more; more = x.nextPath() {
		x.runs++
		x.at, x.actors, x.current, x.over = 0, nil, nil, false
		for _, run := range setup() {
			x.add(run)
		}
		hook = x.hook
		err := x.run()
		hook = nil
		if err == nil {
			err = check()
		}
		x.end()
		if err != nil {
			t.Fatalf("%s: %v\nin run %d, decisions %v", what, err, x.runs, x.path[:min(len(x.path), 100)])
		}
	}
}

// nextPath goes to the next path in the order of a depth-first search.
func (x *explorer) nextPath() bool {
	for len(x.path) > 0 {
		last := &x.path[len(x.path)-1]
		if last.chosen++; last.chosen < last.of {
			return true
		}
		x.path = x.path[:len(x.path)-1]
	}
	return false
}

// choose returns one of n, as the path says.
func (x *explorer) choose(n int) int {
	if n == 1 {
		return 0
	}
	if x.at == len(x.path) {
		x.path = append(x.path, decision{0, n})
	}
	x.at++
	return x.path[x.at-1].chosen
}

// add adds an actor. Actors may do so, too.
func (x *explorer) add(run func()) {
	a := &actor{resume: make(chan struct{}), yielded: make(chan struct{})}
	x.actors = append(x.actors, a)
	go func() {
		defer func() {
			a.panic = recover()
			a.done = true
			a.yielded <- struct{}{}
		}()
		<-a.resume
		if !x.over {
			run()
		}
	}()
}

func (x *explorer) hook(at string) {
	if at == "pause" {
		if !x.over {
			x.current.pauses = true
		}
		a := x.current
		x.wait(false, func() bool { return x.changes > a.seen })
		return
	}
	x.wait(false, nil)
}

// wait ends the current actor's step, until a condition holds. If the actor rests,
// that may be never.
func (x *explorer) wait(rests bool, until func() bool) {
	if x.over {
		return
	}
	a := x.current
	a.until, a.rests = until, rests
	a.yielded <- struct{}{}
	<-a.resume
	if x.over {
		runtime.Goexit()
	}
}

// settle waits until all others rest.
func (x *explorer) settle() {
	x.current.settles = true
	x.wait(true, func() bool {
		return !slices.ContainsFunc(x.actors, func(a *actor) bool {
			return !a.settles && !a.done && (a.until == nil || a.until())
		})
	})
}

// run runs the actors until none can go on.
func (x *explorer) run() error {
	left := x.preemptions
	var can []*actor
	for steps := 0; ; steps++ {
		can = can[:0]
		for _, a := range x.actors {
			if !a.done && (a.until == nil || a.until()) {
				can = append(can, a)
			}
		}
		if len(can) == 0 {
			break
		}
		if steps > 10_000 {
			return fmt.Errorf("no end")
		}
		choices := len(can)
		if i := slices.Index(can, x.current); i >= 0 {
			// The present one first, so that the first path has no preemption.
			can[0], can[i] = can[i], can[0]
			if left == 0 {
				choices = 1
			}
		}
		next := can[x.choose(choices)]
		if can[0] == x.current && next != x.current {
			left--
		}
		x.current = next
		paused := next.pauses
		next.until, next.settles, next.pauses = nil, false, false
		next.resume <- struct{}{}
		<-next.yielded
		if !paused || !next.pauses {
			x.changes++
		}
		next.seen = x.changes
		if next.panic != nil {
			return fmt.Errorf("panic: %v", next.panic)
		}
	}
	for i, a := range x.actors {
		if !a.done && !a.rests {
			return fmt.Errorf("actor %d waits for ever", i)
		}
	}
	return nil
}

// end ends the actors that rest.
func (x *explorer) end() {
	x.over = true
	for _, a := range x.actors {
		if !a.done {
			a.resume <- struct{}{}
			<-a.yielded
		}
	}
}
