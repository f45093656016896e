//go:build unix

package lab

import "golang.org/x/sys/unix"

// switches counts context switches of this process.
type switches struct {
	ru  unix.Rusage
	err error
}

func readSwitches() (s switches) {
	s.err = unix.Getrusage(unix.RUSAGE_SELF, &s.ru)
	return s
}

// since returns how many there were since s was read: those to wait, and those to
// let others run.
func (s switches) since() (voluntary, forced int64, err error) {
	now := readSwitches()
	if s.err != nil {
		return 0, 0, s.err
	}
	return int64(now.ru.Nvcsw - s.ru.Nvcsw), int64(now.ru.Nivcsw - s.ru.Nivcsw), now.err
}
