//go:build linux && !race && !detent_portable

package waker

import "sync/atomic"

// store stores v. It is for a goroutine without a P.
//
//go:nosplit
func store(p *atomic.Int64, v int64) { p.Store(v) }
