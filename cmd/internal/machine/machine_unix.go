//go:build unix

package machine

import "golang.org/x/sys/unix"

// kernel names the system and its release, as uname does.
func kernel() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return unknown
	}
	return unix.ByteSliceToString(u.Sysname[:]) + " " + unix.ByteSliceToString(u.Release[:])
}
