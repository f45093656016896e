//go:build detent_portable

package rt

// Pinned says that Pin keeps the goroutine on its P.
const Pinned = false

// Pin does nothing in a portable build, and returns 0.
func Pin() int { return 0 }

// Unpin ends what Pin began.
func Unpin() {}
