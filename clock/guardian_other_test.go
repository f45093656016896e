//go:build !linux || (!amd64 && !arm64) || detent_portable

package clock

func guardian() bool { return false }
