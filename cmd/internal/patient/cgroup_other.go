//go:build !linux

package patient

import (
	"errors"
	"time"
)

const quota, period = 20 * time.Millisecond, 100 * time.Millisecond

type cgroup struct{}

func newCgroup() (*cgroup, error)                       { return nil, errors.ErrUnsupported }
func (*cgroup) limit(quota, period time.Duration) error { return errors.ErrUnsupported }
func (*cgroup) add(pid int) error                       { return errors.ErrUnsupported }
func (*cgroup) remove() error                           { return errors.ErrUnsupported }
