//go:build !unix && !windows

package bench

import "errors"

func readUsage() usage { return usage{switches: -1, err: errors.ErrUnsupported} }
