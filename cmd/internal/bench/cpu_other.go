//go:build !darwin && !freebsd && !netbsd && !openbsd && !dragonfly && !windows

package bench

func platformCPU() string { return unknown }
