//go:build linux && !detent_portable

package waker

import (
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestGoexit ends the goroutine in wake: another one goes on.
func TestGoexit(t *testing.T) {
	var n atomic.Int64
	woken := make(chan struct{}, 1)
	p, err := NewPrecise(Monotonic, func() {
		n.Add(1)
		woken <- struct{}{}
		runtime.Goexit()
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		p.Arm(now(t) + 10_000)
		select {
		case <-woken:
		case <-time.After(time.Minute):
			t.Fatalf("no wake after %d that ended their goroutine", n.Load())
		}
	}
	p.Close()
	p.Wait()
}

// TestReplace holds a wake up: another goroutine takes over, and the first one
// ends when its wake returns.
func TestReplace(t *testing.T) {
	before := runtime.NumGoroutine()
	hold, held := make(chan struct{}), make(chan struct{})
	woken := make(chan struct{}, 1)
	var first atomic.Bool
	p, err := NewPrecise(Monotonic, func() {
		if first.CompareAndSwap(false, true) {
			close(held)
			<-hold
			return
		}
		woken <- struct{}{}
	})
	if err != nil {
		t.Fatal(err)
	}
	p.Arm(now(t))
	<-held
	p.Replace()
	for range 20 {
		p.Arm(now(t) + 10_000)
		select {
		case <-woken:
		case <-time.After(time.Minute):
			t.Fatal("no wake while another one is held up")
		}
	}
	p.Close()
	p.Wait() // not for the one that is held up
	close(hold)
	settle(t, "the goroutines to end", func() bool { return runtime.NumGoroutine() <= before })
}

// TestClose leaves neither a goroutine nor a file behind, armed or not, at once
// or after a while.
func TestClose(t *testing.T) {
	p, err := NewPrecise(Monotonic, func() {}) // so that the netpoller's own files are open
	if err != nil {
		t.Fatal(err)
	}
	p.Close()
	p.Wait()
	settle(t, "the first one's file to be closed", func() bool { return timerfds(t) == 0 })
	goroutines := runtime.NumGoroutine()
	for k := range 100 {
		p, err := NewPrecise(Monotonic, func() {})
		if err != nil {
			t.Fatal(err)
		}
		if timerfds(t) != 1 {
			t.Fatalf("%d timerfds are open, want 1", timerfds(t))
		}
		switch k % 4 {
		case 1:
			p.Arm(now(t) + int64(time.Hour))
		case 2:
			p.Arm(now(t) + 1000)
		case 3:
			p.Arm(now(t) - 1)
			time.Sleep(100 * time.Microsecond)
		}
		p.Close()
		p.Wait()
		if n := timerfds(t); n != 0 {
			t.Fatalf("%d timerfds are open after Close and Wait", n)
		}
	}
	settle(t, "the goroutines to end", func() bool { return runtime.NumGoroutine() <= goroutines })
}

// timerfds counts the timerfds that this process has open.
func timerfds(t *testing.T) (n int) {
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip(err)
	}
	for _, f := range files {
		if to, err := os.Readlink("/proc/self/fd/" + f.Name()); err == nil && strings.Contains(to, "timerfd") {
			n++
		}
	}
	return n
}

// settle waits for a condition.
func settle(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for limit := time.Now().Add(time.Minute); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
