package suite

import (
	"testing"
)

// TestTime runs the suite over package time, which shows the suite to be right.
func TestTime(t *testing.T) { Run(t, Time()) }
