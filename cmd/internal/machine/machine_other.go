//go:build !unix && !windows

package machine

import "runtime"

func kernel() string { return runtime.GOOS }
