//go:build !linux

package lab

import "errors"

func onCPUs(int, int, func()) error { return errors.ErrUnsupported }
