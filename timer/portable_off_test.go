//go:build !detent_portable

package timer_test

// portable reports whether this is the portable build.
const portable = false
