package netpoll114_test

import (
	"testing"

	"github.com/detent-go/detent/lab/engine/netpoll114"
	"github.com/detent-go/detent/lab/internal/enginetest"
)

func TestSuite(t *testing.T) { enginetest.Suite(t, netpoll114.Info(), enginetest.Over()) }

func TestClose(t *testing.T) { enginetest.Close(t, netpoll114.Info(), 3) }

func TestThreads(t *testing.T) { enginetest.Threads(t, netpoll114.Info(), 3) }
