package netpoll114

import (
	"runtime"
	"sync/atomic"
)

// status is the state of a node. The package's comment says what each means.
type status uint32

const (
	noStatus status = iota
	waiting
	running
	deleted
	removing
	removed
	modifying
	modifiedEarlier
	modifiedLater
	moving
)

func (s status) String() string {
	return [...]string{
		"NoStatus", "Waiting", "Running", "Deleted", "Removing", "Removed",
		"Modifying", "ModifiedEarlier", "ModifiedLater", "Moving",
	}[s]
}

// follows are all changes of state that there are.
var follows = [...][]status{
	noStatus:        {waiting, modifying},
	waiting:         {running, modifying},
	running:         {noStatus, waiting},
	deleted:         {removing, modifying},
	removing:        {removed},
	removed:         {modifying},
	modifying:       {waiting, deleted, removed, modifiedEarlier, modifiedLater},
	modifiedEarlier: {modifying, moving},
	modifiedLater:   {modifying, moving},
	moving:          {waiting},
}

// state is a node's status.
type state struct{ v atomic.Uint32 }

func (s *state) load() status { return status(s.v.Load()) }

// change goes from one state to another, unless somebody was faster.
func (s *state) change(from, to status) bool {
	step("change")
	if !s.v.CompareAndSwap(uint32(from), uint32(to)) {
		return false
	}
	if watch != nil {
		watch(from, to)
	}
	return true
}

// must leaves a state that belongs to the caller: nobody can be faster.
func (s *state) must(from, to status) {
	if !s.change(from, to) {
		panic("lab: netpoll114: timer is " + s.load().String() + ", was " + from.String())
	}
}

// Tests see each step, and each change of state. Both are nil otherwise.
var (
	hook  func(at string)
	watch func(from, to status)
)

// step is called before each operation that others can see.
func step(at string) {
	if hook != nil {
		hook(at)
	}
}

// pause lets somebody else leave a state that lasts for a moment. The runtime gives
// the processor away to another thread; here the one that is waited for may be a
// goroutine that was preempted, so it is the Go scheduler that has to act.
func pause() {
	if hook != nil {
		hook("pause")
		return
	}
	runtime.Gosched()
}
