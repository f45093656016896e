//go:build !linux || detent_portable

package vdso

// Syscall returns an error that wraps [errors.ErrUnsupported].
func Syscall(id int32) (ns int64, err error) { return 0, errNone }
