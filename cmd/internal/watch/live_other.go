//go:build !linux

package watch

import (
	"context"
	"errors"
	"io"
	"time"
)

// Live shows a source on a terminal: on Linux only, where there is one to show.
func Live(context.Context, Source, string, time.Duration, io.Reader, io.Writer, bool) error {
	return errors.ErrUnsupported
}
