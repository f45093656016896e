//go:build !race

package shard

// race reports whether the race detector is on.
const race = false
