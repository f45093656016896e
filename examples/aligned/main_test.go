package main

import (
	"context"
	"strings"
	"testing"
	"time"
)

// TestRun: lines come at multiples of the period by the wall clock, and end with the
// context.
func TestRun(t *testing.T) {
	var b strings.Builder
	const every = 20 * time.Millisecond
	run(context.Background(), &b, every, 0, 0, 3)
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != 3 {
		t.Fatalf("%q", lines)
	}
	for _, line := range lines {
		stamp, _, _ := strings.Cut(line, ",")
		at, err := time.Parse("15:04:05.000", stamp)
		if err != nil || at.Nanosecond()%int(every) != 0 {
			t.Errorf("%q is not on the grid of %v: %v", line, every, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	b.Reset()
	run(ctx, &b, time.Hour, 0, 0, 0)
	if b.String() != "" {
		t.Errorf("%q after the end", b.String())
	}
}
