//go:build !unix && !windows

package machine

import "errors"

func ReadUsage() Usage { return Usage{Switches: -1, Err: errors.ErrUnsupported} }
