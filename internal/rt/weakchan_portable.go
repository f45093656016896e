//go:build detent_portable

package rt

// WeakChan is a reference to a channel that does not keep it from being
// collected. In a portable build it does.
type WeakChan[T any] struct{ c chan T }

// MakeWeakChan returns a reference to c.
func MakeWeakChan[T any](c chan T) WeakChan[T] { return WeakChan[T]{c} }

// OnCollected does nothing: in a portable build a channel is not collected.
func OnCollected[T, A any](c chan T, f func(A), arg A) {}

// Value returns the channel.
func (w WeakChan[T]) Value() chan T { return w.c }
