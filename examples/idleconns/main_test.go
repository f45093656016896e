package main

import (
	"testing"
	"time"
)

// TestRun: with each engine, connections that hear nothing are closed, all of them
// and once, and those that are heard of are not counted before.
func TestRun(t *testing.T) {
	for _, e := range engines {
		const conns = 1000
		quiet := run(e, conns, 0, time.Hour, 20*time.Millisecond)
		if quiet.closed != 0 {
			t.Errorf("%s: %d closed long before their timeout", e.name, quiet.closed)
		}
		done := make(chan int, 2*conns)
		packet, end := e.open(conns, 10*time.Millisecond, func(conn int) { done <- conn })
		packet(7) // pushed back, or opened again
		seen := make([]int, conns)
		for left := conns; left > 0; {
			conn := <-done
			if seen[conn]++; seen[conn] == 1 {
				left--
			} else if conn != 7 {
				t.Errorf("%s: connection %d closed %d times", e.name, conn, seen[conn])
			}
		}
		end()
	}
}
