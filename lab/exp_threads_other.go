//go:build !linux

package lab

func threads() (int, error) { return 0, errNoThreads }

func inNanosleep(int, bool) (before, during, after int, err error) { return 0, 0, 0, errNoThreads }
