//go:build !linux

package prom

import "time"

func forEachCPU(f func(cpu string)) { f("unknown") }

// systemCall has nothing to compare with.
func systemCall() time.Duration { return 0 }
