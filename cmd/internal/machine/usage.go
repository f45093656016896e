package machine

import "time"

// Usage is what this process has used since it started.
type Usage struct {
	CPU time.Duration // user and system
	// Switches counts the times that a thread gave up its CPU to wait;
	// negative where the system does not tell.
	Switches int64
	Err      error // why there is none
}
