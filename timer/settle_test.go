package timer

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"
)

// A goroutine that never waits keeps Settle from being true, but not from
// returning; once it waits, Settle is true.
func TestSettleSpinning(t *testing.T) {
	if runtime.GOMAXPROCS(0) == 1 {
		t.Skip("where there is one P, the spinning goroutine is never caught running")
	}
	stop, release, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for spinning := true; spinning; {
			select {
			case <-stop:
				spinning = false
			default:
			}
		}
		<-release
	}()
	s := new(settler)
	if s.settle(settlePauses + 50) {
		t.Error("settled beside a goroutine that never waits")
	}
	close(stop)
	if !s.settle(settleLooks) {
		t.Error("never settled, though everybody waits")
	}
	select {
	case <-ended:
		t.Error("the goroutine did not wait")
	default:
	}
	close(release)
	<-ended
}

// A goroutine that writes to a file is waited for.
func TestSettleCalls(t *testing.T) {
	s := new(settler)
	r, w, err := os.Pipe()
	if err != nil {
		t.Skip(err)
	}
	defer r.Close()
	defer w.Close()
	for range 200 {
		wrote := make(chan struct{})
		go func() {
			defer close(wrote)
			for range 5 {
				fmt.Fprintln(w, "a line")
			}
		}()
		if !s.settle(settleLooks) {
			t.Fatal("never settled")
		}
		select {
		case <-wrote:
		default:
			t.Fatal("settled beside a goroutine that writes")
		}
		for range 5 {
			if _, err := r.Read(make([]byte, 7)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A goroutine that does not return from a system call is not waited for, and that
// only once.
func TestSettleInCall(t *testing.T) {
	child := exec.Command("cat")
	input, err := child.StdinPipe()
	if err != nil {
		t.Skip(err)
	}
	if err := child.Start(); err != nil {
		t.Skip(err)
	}
	ended := make(chan error)
	go func() { ended <- child.Wait() }()
	s := new(settler)
	if !s.settle(settleLooks) {
		t.Error("never settled beside a goroutine in a system call")
	}
	if s.calls.Load() > 0 && !s.settle(settlePauses/2) {
		t.Error("not settled at once beside a goroutine that is known to stay in a system call")
	}
	input.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// When the goroutine has returned from its call, another one in its place is waited
// for again.
func TestSettleForgets(t *testing.T) {
	s := new(settler)
	s.calls.Store(1 << 20) // as many as that have returned
	if !s.settle(settleLooks) {
		t.Fatal("never settled")
	}
	if known := s.calls.Load(); known == 1<<20 {
		t.Errorf("%d goroutines count as staying in system calls", known)
	}
}

func BenchmarkSettle(b *testing.B) {
	m, err := NewManual(time.Time{}, nil)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		m.Settle()
	}
}
