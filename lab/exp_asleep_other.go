//go:build !linux

package lab

import "errors"

func lookAtThreads(int) counted { return counted{err: errors.ErrUnsupported} }
