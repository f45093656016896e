//go:build !linux

package futex

import (
	"errors"
	"fmt"
	"runtime"
	"time"
)

// Available reports whether there are futexes, by a nil error.
func Available() error {
	return fmt.Errorf("futex on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

func wait(*uint32, uint32, time.Duration) { refuse() }

func wake(*uint32, int) { refuse() }

// refuse panics: who called it has not asked whether there are futexes.
func refuse() {
	if err := Available(); err != nil {
		panic(err)
	}
}
