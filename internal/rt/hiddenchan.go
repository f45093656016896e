//go:build !detent_portable && !goexperiment.goroutineleakprofile

package rt

import (
	"runtime"
	"unsafe"
)

// Hides says that hidden references are hidden. They are not in a portable build, nor
// where the runtime looks for leaked goroutines: one that waits for a channel that only
// a hidden reference leads to is leaked in its eyes, and to send to it then ends the
// program.
const Hides = true

// HiddenChan is a reference to a channel that the collector does not see: the
// channel is collected as if it did not exist. In a portable build it is seen.
//
// A weak pointer would not do. To follow one while the collector marks makes it
// keep the object for this cycle, so a channel that is looked at more often than
// a cycle takes would never be collected; and to follow one may have to wait for
// the collector.
type HiddenChan[T any] struct{ p uintptr }

// HideChan returns a hidden reference to c.
func HideChan[T any](c chan T) HiddenChan[T] {
	// A channel is a pointer to the runtime's object.
	return HiddenChan[T]{*(*uintptr)(unsafe.Pointer(&c))}
}

// BeforeCollected has f called, on a goroutine of the runtime's, once nobody
// refers to c any more, hidden references aside. Those may be used until f has
// returned, and not afterwards: until then the finalizer keeps the channel. f
// must not lead to c, and c must have no finalizer yet.
func BeforeCollected[T any](c chan T, f func()) {
	runtime.SetFinalizer(*(**byte)(unsafe.Pointer(&c)), func(*byte) { f() })
}

// Chan returns the channel. The caller is sure that somebody else refers to it,
// or that the function given to BeforeCollected has not returned, and cannot
// before the caller is done.
func (h HiddenChan[T]) Chan() chan T { return *(*chan T)(unsafe.Pointer(&h.p)) }
