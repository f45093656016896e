//go:build !linux || detent_portable

package probe

import (
	"errors"
	"time"
)

func klog() (string, error) { return "", errors.ErrUnsupported }

func timerSlack() (time.Duration, error) { return 0, errors.ErrUnsupported }

func adjtimex() (timex, error) { return timex{}, errors.ErrUnsupported }
