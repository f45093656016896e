//go:build !detent_portable

package rt

import (
	"runtime"
	"unsafe"
	"weak"
)

// WeakChan is a reference to a channel that does not keep it from being
// collected. In a portable build it does.
type WeakChan[T any] struct{ p weak.Pointer[byte] }

// MakeWeakChan returns a weak reference to c.
//
// A channel value is a pointer to the runtime's channel object; a weak pointer
// needs no more than its address, and keeps what the object's type says to the
// collector out of it.
func MakeWeakChan[T any](c chan T) WeakChan[T] {
	return WeakChan[T]{weak.Make(*(**byte)(unsafe.Pointer(&c)))}
}

// OnCollected arranges for f(arg) to be called, on a goroutine of the runtime's,
// some time after c has been collected. arg must not lead to c.
func OnCollected[T, A any](c chan T, f func(A), arg A) {
	runtime.AddCleanup(*(**byte)(unsafe.Pointer(&c)), f, arg)
}

// Value returns the channel, or nil if it has been collected. It may wait for
// the collector: a pinned goroutine must not call it.
func (w WeakChan[T]) Value() chan T {
	p := w.p.Value()
	return *(*chan T)(unsafe.Pointer(&p))
}
