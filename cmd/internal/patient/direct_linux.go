package patient

import "golang.org/x/sys/unix"

// HotLoop is where the Direct patient reads its clock.
//
//go:noinline
func HotLoop() {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err)
	}
}
