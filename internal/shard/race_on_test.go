//go:build race

package shard

// race reports whether the race detector is on, which makes tests some twenty
// times as slow.
const race = true
