//go:build !linux

package lab

// systemRaw is nil: other systems have no such clock, or another way to it.
var systemRaw func() int64
