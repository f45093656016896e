package std_test

import (
	"testing"
	"time"

	"github.com/detent-go/detent/lab/engine"
	"github.com/detent-go/detent/lab/engine/std"
	"github.com/detent-go/detent/lab/internal/enginetest"
)

func TestSuite(t *testing.T) {
	enginetest.Suite(t, std.Info(), enginetest.Zero{
		Prefix: "time: ",
		Timer:  func() engine.ChanTimer { return std.Timer{Timer: new(time.Timer)} },
		Ticker: func() engine.Ticker { return std.Ticker{Ticker: new(time.Ticker)} },
	})
}
