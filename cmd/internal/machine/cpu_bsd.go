//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package machine

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// platformCPU asks the kernel for the name of the CPU.
func platformCPU() string {
	name := "hw.model"
	if runtime.GOOS == "darwin" {
		name = "machdep.cpu.brand_string"
	}
	if s, err := unix.Sysctl(name); err == nil && s != "" {
		return s
	}
	return unknown
}
