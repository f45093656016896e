//go:build !darwin && !freebsd && !netbsd && !openbsd && !dragonfly && !windows

package machine

func platformCPU() string { return unknown }
