//go:build !unix

package lab

import "errors"

type switches struct{}

func readSwitches() switches { return switches{} }

func (switches) since() (voluntary, forced int64, err error) { return 0, 0, errors.ErrUnsupported }
