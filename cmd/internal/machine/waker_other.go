//go:build !linux || detent_portable

package machine

import "runtime"

// portableReason says why detent has no timerfd to be woken by.
func portableReason() string {
	if runtime.GOOS != "linux" {
		return runtime.GOOS + " has no timerfd"
	}
	return "built with -tags detent_portable"
}
