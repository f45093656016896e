//go:build !linux

package futex

const sysFutex = ""
