package buckets64_test

import (
	"testing"

	"github.com/detent-go/detent/lab/engine/buckets64"
	"github.com/detent-go/detent/lab/internal/enginetest"
)

func TestSuite(t *testing.T) { enginetest.Suite(t, buckets64.Info(), enginetest.Over()) }

func TestClose(t *testing.T) { enginetest.Close(t, buckets64.Info(), 8) }
