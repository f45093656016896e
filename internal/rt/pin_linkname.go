//go:build !detent_portable

package rt

import (
	_ "unsafe" // for go:linkname
)

// Pinned says that Pin keeps the goroutine on its P.
const Pinned = true

// Pin keeps the calling goroutine on its P until [Unpin], and returns the P's
// number. In between, the goroutine must not block, and must be quick: neither
// the scheduler nor a stop of the world can take the P away.
//
// Being pinned is what bounds the time that a shard's lock is held: a holder
// that the Go scheduler set aside for 10 ms would stall every timer of the P.
//
//go:linkname Pin runtime.procPin
func Pin() int

// Unpin ends what Pin began.
//
//go:linkname Unpin runtime.procUnpin
func Unpin()
