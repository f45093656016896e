package netpoll114

import "sync/atomic"

// proc is a P: what a thread must have in order to run anything.
type proc struct {
	timers timers
	runq   runq
	ticks  uint32     // rounds of schedule; its thread's
	spawn  func(task) // makes a task runnable on this P

	// word is a count of the tasks so far, shifted, and what the P is: so that
	// who finds a P in a task can tell later whether it is still the same one.
	word atomic.Uint64

	// These are sysmon's.
	seen  uint64 // word when it last looked
	since int64  // when it first saw that

	_ [64]byte // the next P is in other cache lines
}

// What a P is, in the low bits of its word.
const (
	idle    = iota // on the list of idle P's, or about to change hands
	inUse          // a thread has it and looks for work
	inTask         // a thread runs a task, and may be in it for long
	oneTask = 4    // the word's count of tasks
	isWhat  = oneTask - 1
)

func (p *proc) is() uint64 { return p.word.Load() & isWhat }

// become changes what the P is. Only whose P it is may call it.
func (p *proc) become(what uint64) { p.word.Store(p.word.Load()&^isWhat | what) }

// enterTask says that the P's thread begins a task, and returns what leaveTask
// needs.
func (p *proc) enterTask() (word uint64) {
	word = p.word.Load()&^isWhat + oneTask | inTask
	p.word.Store(word)
	return word
}

// leaveTask takes the P back after a task, unless somebody else has taken it away
// since. The same call takes it away for somebody else, who makes it something else.
func (p *proc) leaveTask(word, to uint64) bool {
	return p.word.CompareAndSwap(word, word&^isWhat|to)
}
