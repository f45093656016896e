package waker

import (
	"sync"
	"testing"
	"time"

	"github.com/detent-go/detent/internal/rt"
)

// backed is the owner of a backstop.
type backed struct {
	mu    sync.Mutex
	b     *Backstop
	woken chan int64
}

func newBacked() *backed {
	k := &backed{woken: make(chan int64, 64)}
	k.b = NewBackstop(func() {
		now, _ := rt.Now()
		k.woken <- now
	})
	return k
}

// arm arms for d from now, and returns that time.
func (k *backed) arm(d time.Duration) int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	now, _ := rt.Now()
	k.b.Arm(now+int64(d), now)
	return now + int64(d)
}

func (k *backed) await(t *testing.T, at int64) {
	t.Helper()
	select {
	case now := <-k.woken:
		if now < at {
			t.Fatalf("woken %d ns early", at-now)
		}
	case <-time.After(time.Minute):
		t.Fatal("the wake was lost")
	}
}

// until waits for a wake at the given time or later. One of the Arm before may
// come first.
func (k *backed) until(t *testing.T, at int64) {
	t.Helper()
	for now := at - 1; now < at; {
		select {
		case now = <-k.woken:
		case <-time.After(time.Minute):
			t.Fatal("the wake was lost")
		}
	}
}

// TestBackstop: one wake for each Arm that is not replaced, and never early.
func TestBackstop(t *testing.T) {
	k := newBacked()
	k.b.Disarm() // before the first Arm
	for n := range 50 {
		k.await(t, k.arm(time.Duration(n*7919%1_000_000)))
	}
	for _, d := range []time.Duration{0, -1, -time.Hour} {
		k.await(t, k.arm(d))
	}
	// To earlier and to later.
	for range 20 {
		k.arm(time.Hour)
		k.until(t, k.arm(100*time.Microsecond))
		k.arm(time.Millisecond)
		k.until(t, k.arm(5*time.Millisecond))
	}
}

func TestBackstopDisarm(t *testing.T) {
	k := newBacked()
	k.arm(time.Hour)
	k.b.Disarm()
	k.b.Disarm()
	k.await(t, k.arm(time.Microsecond))
	k.arm(30 * time.Minute)
	k.b.Disarm()
	if k.b.t.Stop() {
		t.Error("armed after Disarm")
	}
	select {
	case <-k.woken:
		t.Error("woken after Disarm, half an hour early")
	case <-time.After(5 * time.Millisecond):
	}
}
