//go:build !linux

package osthread

func isFirst() bool { return false }

func setName(string) {}

// LeastSlack does nothing.
func LeastSlack() {}
