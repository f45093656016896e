//go:build !linux

package patient

import (
	"fmt"
	"os"
)

func playRefused() {
	if _, ok := os.LookupEnv(refusal); ok {
		fmt.Fprintln(os.Stderr, "patient: no filters of system calls on this system")
		os.Exit(cannot)
	}
}
