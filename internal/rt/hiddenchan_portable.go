//go:build detent_portable || goexperiment.goroutineleakprofile

package rt

// Hides says that hidden references are hidden.
const Hides = false

// HiddenChan is a reference to a channel that the collector does not see: the
// channel is collected as if it did not exist. In a portable build it is seen.
type HiddenChan[T any] struct{ c chan T }

// HideChan returns a reference to c.
func HideChan[T any](c chan T) HiddenChan[T] { return HiddenChan[T]{c} }

// BeforeCollected does nothing: c is not collected while it is referred to.
func BeforeCollected[T any](c chan T, f func()) {}

// Chan returns the channel.
func (h HiddenChan[T]) Chan() chan T { return h.c }
