//go:build !linux

package patient

// HotLoop is where the Direct patient reads its clock.
func HotLoop() {}
