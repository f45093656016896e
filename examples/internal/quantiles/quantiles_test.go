package quantiles

import (
	"testing"
	"time"
)

func TestOf(t *testing.T) {
	var values []time.Duration
	for i := range 100 {
		values = append(values, time.Duration(100-i)*time.Microsecond)
	}
	if got, want := Of(values), "p50 50µs, p99 99µs, worst 100µs"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := Of(nil); got != "none" {
		t.Errorf("%q of nothing", got)
	}
}
