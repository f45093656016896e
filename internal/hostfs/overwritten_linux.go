package hostfs

import (
	"errors"
	"syscall"
)

// overwritten reports whether a record of /dev/kmsg went before it was read.
func overwritten(err error) bool { return errors.Is(err, syscall.EPIPE) }
