package main

import (
	"math"
	"testing"
	"time"

	"github.com/detent-go/detent/timer"
)

func TestRun(t *testing.T) {
	for _, engine := range []string{"lane", "time"} {
		if err := run(engine, 50*time.Millisecond, false, timer.LaneOptions{}); err != nil {
			t.Errorf("%s: %v", engine, err)
		}
	}
	if err := run("sundial", time.Second, false, timer.LaneOptions{}); err == nil {
		t.Error("an unknown engine ran")
	}
	if err := run("lane", time.Microsecond, false, timer.LaneOptions{}); err == nil {
		t.Error("less than a cycle ran")
	}
}

// TestController: the controller reaches its target, and no cycle begins early.
func TestController(t *testing.T) {
	l := &loop{late: make([]time.Duration, 0, 3000), done: make(chan struct{}), target: 100, reset: func(time.Duration) {}}
	l.deadline = time.Now()
	for range cap(l.late) {
		l.deadline = time.Now()
		l.cycle()
	}
	if off := math.Abs(l.motor.speed - l.target); off > 1 {
		t.Errorf("the motor runs at %v", l.motor.speed)
	}
	for _, late := range l.late {
		if late < 0 {
			t.Errorf("a cycle began %v early", -late)
		}
	}
}
