package detent_test

import (
	"testing"

	"github.com/detent-go/detent/lab/engine"
	"github.com/detent-go/detent/lab/engine/detent"
	"github.com/detent-go/detent/lab/internal/enginetest"
	"github.com/detent-go/detent/timer"
)

func TestSuite(t *testing.T) {
	enginetest.Suite(t, detent.Info(), enginetest.Zero{
		Prefix: "timer: ",
		Timer:  func() engine.ChanTimer { return detent.Timer{Timer: new(timer.Timer)} },
		Ticker: func() engine.Ticker { return detent.Ticker{Ticker: new(timer.Ticker)} },
	})
}

func TestClose(t *testing.T) { enginetest.Close(t, detent.Info(), 0) }
