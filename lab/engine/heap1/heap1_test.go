package heap1_test

import (
	"testing"

	"github.com/detent-go/detent/lab/engine/heap1"
	"github.com/detent-go/detent/lab/internal/enginetest"
)

func TestSuite(t *testing.T) { enginetest.Suite(t, heap1.Info(), enginetest.Over()) }

func TestClose(t *testing.T) { enginetest.Close(t, heap1.Info(), 0) }
