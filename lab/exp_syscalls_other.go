//go:build !linux

package lab

import "errors"

func countCalls([]string) (*callCounter, error) {
	return nil, errors.ErrUnsupported
}
