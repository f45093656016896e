//go:build linux && !detent_portable

package vdso

// prepareSignals has nothing to do: the signal handler finds g in thread local
// storage, which C leaves alone.
func prepareSignals() error { return nil }
