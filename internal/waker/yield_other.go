//go:build !linux || detent_portable

package waker

import "runtime"

// Yield gives the goroutines that are ready their turn.
func Yield() { runtime.Gosched() }
