//go:build !linux

package shard

import "github.com/detent-go/detent/internal/rt"

// cpuTime returns the time: the thread's share of it is not to be had everywhere.
func cpuTime() int64 {
	ns, _ := rt.Now()
	return ns
}
