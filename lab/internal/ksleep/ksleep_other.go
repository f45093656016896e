//go:build !linux

package ksleep

import (
	"errors"
	"fmt"
	"runtime"
	"time"
)

// Available reports whether a thread can sleep in these ways, by a nil error.
func Available() error {
	return fmt.Errorf("futex and epoll on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

func wait(*uint32, uint32, time.Duration) { refuse() }

func wake(*uint32, int) { refuse() }

// Epoll panics.
func Epoll(int, int) bool { refuse(); return false }

// Nanosleep panics.
func Nanosleep(time.Duration) { refuse() }

// refuse panics: who called it has not asked whether it is available.
func refuse() {
	if err := Available(); err != nil {
		panic(err)
	}
}
