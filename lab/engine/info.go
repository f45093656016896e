package engine

import (
	"maps"
	"time"
)

// Info describes an engine to those who measure or list it.
type Info struct {
	Name    string
	Summary string // one line
	Years   string // in which it was what Go programs used; "" if it never was
	Go      string // the Go versions of those years

	// Grain is by how much a timer may fire later than it could, because the
	// engine only looks at fixed times; 0 if it does not.
	Grain time.Duration

	// Lacks holds the capabilities that the engine does not have, each with the
	// reason, or with what was seen.
	Lacks map[Capability]string

	// New makes an engine with parts for that many Ps, or for GOMAXPROCS if
	// procs is 0. A negative procs is an error, unless the engine has the same parts
	// for any number. On a system that lacks what the engine is made of the error is
	// errors.ErrUnsupported.
	New func(procs int) (Engine, error)
}

// Can reports whether the engine has a capability.
func (i Info) Can(c Capability) bool {
	_, lacks := i.Lacks[c]
	return !lacks
}

// Capability is a behaviour that not every engine has.
type Capability string

const (
	// NeverEarly: no timer fires before its deadline.
	NeverEarly Capability = "a timer never fires before its deadline"

	// Results: what Stop and Reset return says whether the timer was armed.
	Results Capability = "Stop and Reset tell whether the timer was armed"

	// ExactResults: they do so also while another goroutine receives.
	ExactResults Capability = "Stop and Reset claim no value that another goroutine is receiving"

	// Resets: a timer can be armed anew, instead of being replaced.
	Resets Capability = "a timer can be reset"

	// AnyDuration: any duration is a duration, also 0 and 1<<63-1.
	AnyDuration Capability = "every duration works"

	// AnyTime: Stop and Reset may be called at any time, from anywhere.
	AnyTime Capability = "Stop and Reset can be called at any time"

	// Counted: the engine counts what it does.
	Counted Capability = "timers, wake-ups and system calls are counted"

	// NilPanics: AfterFunc with a nil function panics at the call.
	NilPanics Capability = "AfterFunc(d, nil) panics at the call"

	// BoundedStorm: very many timers due at once do not make a goroutine each.
	BoundedStorm Capability = "timers due at once make a bounded number of goroutines"

	// Dropped: a ticker to which nobody refers any more is collected.
	Dropped Capability = "a ticker that is dropped is collected"

	// SyncChannels: channels have no buffer, as since Go 1.23.
	SyncChannels Capability = "len and cap of C are 0"

	// Closes: Close ends all timers, goroutines and threads.
	Closes Capability = "Close ends everything"
)

// LacksOver returns what no engine behind the face of [Over] has, and more.
func LacksOver(more map[Capability]string) map[Capability]string {
	l := map[Capability]string{
		SyncChannels: "channels have a buffer of one, as before Go 1.23",
		Dropped:      "a ticker that nobody has stopped stays for ever, as before Go 1.23",
		BoundedStorm: "each function gets a goroutine when it is due, as in the Go runtime",
	}
	maps.Copy(l, more)
	return l
}
