//go:build linux && race && !detent_portable

package waker

import (
	"sync/atomic"
	"unsafe"
)

// store stores v. It is for a goroutine without a P, where the race detector,
// which watches atomic operations too, must not be called.
//
//go:nosplit
//go:norace
//go:nocheckptr
func store(p *atomic.Int64, v int64) { *(*int64)(unsafe.Pointer(p)) = v }
