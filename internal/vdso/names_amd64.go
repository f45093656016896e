//go:build linux && !detent_portable

package vdso

const (
	symbol  = "__vdso_clock_gettime"
	version = "LINUX_2.6"
)
