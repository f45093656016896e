//go:build race

package suite

// Race reports whether the race detector is on.
const Race = true
