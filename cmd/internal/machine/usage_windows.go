package machine

import (
	"time"

	"golang.org/x/sys/windows"
)

func ReadUsage() Usage {
	var created, exited, kernel, user windows.Filetime
	err := windows.GetProcessTimes(windows.CurrentProcess(), &created, &exited, &kernel, &user)
	return Usage{CPU: filetimeSpan(kernel) + filetimeSpan(user), Switches: -1, Err: err}
}

// filetimeSpan reads a Filetime that counts a span, in units of 100 ns.
func filetimeSpan(t windows.Filetime) time.Duration {
	return time.Duration(uint64(t.HighDateTime)<<32|uint64(t.LowDateTime)) * 100
}
