//go:build !linux

package lab

import "errors"

func (c clocksource) guarded(func() error) error { return errors.ErrUnsupported }
