package main

import (
	"testing"
	"time"

	"github.com/detent-go/detent/timer"
)

// TestSend: what is sent is counted, and none too soon. Packets may be lost: it is
// UDP.
func TestSend(t *testing.T) {
	begin := time.Now()
	r, err := send(2000, 100*time.Millisecond, timer.SleepUntil)
	if err != nil {
		t.Skipf("no UDP over loopback: %v", err)
	}
	if took := time.Since(begin); took < 99*time.Millisecond || r.rate <= 0 || r.rate > 2050 {
		t.Errorf("%v packets a second, in %v", r.rate, took)
	}
	if r.lost < 0 || len(r.gaps)+r.lost+1 < 200 {
		t.Errorf("%d gaps and %d lost of 200", len(r.gaps), r.lost)
	}
}
