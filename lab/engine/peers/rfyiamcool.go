//go:build lab_rfyiamcool

package peers

import (
	"time"

	rfyiamcool "github.com/rfyiamcool/go-timewheel"
)

// rfyIamCool is rfyiamcool/go-timewheel with a tick of 1 ms: one ring, whose slots are
// maps of timers with the number of rounds that each has to wait.
type rfyIamCool struct{ tw *rfyiamcool.TimeWheel }

func newRfyIamCool() (library, error) {
	tw, err := rfyiamcool.NewTimeWheel(time.Millisecond, 360)
	if err != nil {
		return nil, err
	}
	tw.Start()
	return rfyIamCool{tw}, nil
}

func (l rfyIamCool) afterFunc(d time.Duration, f func()) func() bool {
	task := l.tw.Add(d, f)
	return func() bool { return l.tw.Remove(task) == nil }
}

func (l rfyIamCool) close() { l.tw.Stop() }
