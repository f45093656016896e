//go:build !unix && !windows

package bench

import "runtime"

func kernel() string { return runtime.GOOS }
