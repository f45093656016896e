package futex

import (
	"strconv"

	"golang.org/x/sys/unix"
)

var sysFutex = strconv.Itoa(unix.SYS_FUTEX)
