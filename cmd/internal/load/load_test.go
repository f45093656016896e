package load

import (
	"runtime"
	"testing"
)

// TestStart: each load runs while it is wanted, and leaves nothing.
func TestStart(t *testing.T) {
	for _, k := range Kinds() {
		before := runtime.NumGoroutine()
		stop, err := k.Start(3)
		if err != nil {
			t.Fatal(err)
		}
		more := map[Kind]int{Idle: 0, Spin: runtime.GOMAXPROCS(0), SpinFour: 4 * runtime.GOMAXPROCS(0), PingPong: 6}[k]
		if got := runtime.NumGoroutine() - before; got != more {
			t.Errorf("%s: %d goroutines more, want %d", k, got, more)
		}
		stop()
	}
	if _, err := Kind("dance").Start(1); err == nil {
		t.Error("an unknown load has been started")
	}
}
