//go:build linux && !detent_portable

package waker

import (
	"bytes"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestSaturated: the score rises by 1 and falls by 2, the scheduler is saturated from
// enterScore on until 0.
func TestSaturated(t *testing.T) {
	var k keeper
	for n := 1; n <= 100; n++ {
		k.count(true)
		if want := n >= enterScore; k.saturated != want {
			t.Fatalf("after %d times saturated is %v", n, k.saturated)
		}
	}
	for n := 1; n <= fullScore; n++ {
		k.count(false)
		if want := 2*n < fullScore; k.saturated != want {
			t.Fatalf("after %d times without a queue saturated is %v", n, k.saturated)
		}
	}
	// As often with as without it is not.
	for n := range 1000 {
		if k.count(n%2 == 0); k.saturated {
			t.Fatal("saturated with a queue every other time")
		}
	}
}

// saturate has spinning goroutines, so many for each P, until the test ends; they
// count their rounds together.
func saturate(t *testing.T, perP int) *atomic.Int64 {
	var end atomic.Bool
	var wg sync.WaitGroup
	var rounds atomic.Int64
	for range perP * runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for n := 1; !end.Load(); n++ {
				if n%1000 == 0 {
					rounds.Add(1)
				}
			}
		})
	}
	t.Cleanup(func() { end.Store(true); wg.Wait() })
	return &rounds
}

// eventually waits until what holds. It does not sleep in a lane.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for limit := time.Now().Add(2 * time.Minute); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("it does not come to pass: %s", what)
		}
	}
}

// ticking is a lane that is woken every so often.
type ticking struct {
	*Lane
	next  int64
	wakes atomic.Int64
	early atomic.Int64
	ready chan struct{}
}

// tick makes a lane that is woken every period, and then calls f, which may be nil.
func tick(t *testing.T, o LaneOptions, period time.Duration, f func()) *ticking {
	k := &ticking{ready: make(chan struct{})}
	l := mustLane(t, o, func() {
		<-k.ready
		at := now(t)
		if at < k.next {
			k.early.Add(1)
		}
		k.wakes.Add(1)
		if f != nil {
			f()
		}
		k.next = at + int64(period)
		k.Arm(k.next)
	})
	k.Lane = l
	l.Arm(now(t))
	close(k.ready)
	return k
}

// twoPs skips the test where there are not the two Ps, and CPUs, that it takes for
// one to be kept.
func twoPs(t *testing.T) {
	if runtime.GOMAXPROCS(0) < 2 || runtime.NumCPU() < 2 {
		t.Skip("there is one P, or CPU")
	}
}

// TestKeep: under a saturated scheduler the P is kept. All the same the world can be
// stopped, the stack of the lane's goroutine scanned, and others get their turns: those
// that wake makes ready, those that wait for a P, and timers.
func TestKeep(t *testing.T) {
	twoPs(t)
	for _, perP := range []int{1, 4} {
		received := make(chan struct{}, 1)
		rounds := saturate(t, perP)
		ball := make(chan struct{}, 1)
		k := tick(t, LaneOptions{}, 300*time.Microsecond, func() {
			select {
			case ball <- struct{}{}:
			default:
			}
		})
		go func() {
			for range ball {
				select {
				case received <- struct{}{}:
				default:
				}
			}
		}()
		t.Cleanup(func() { k.Close(); k.Wait(); close(ball) })
		eventually(t, "the lane keeps its P", func() bool { return k.Kept() > 0 })
		for n := range 5 {
			before, kept, wakes := rounds.Load(), k.Kept(), k.wakes.Load()
			runtime.GC()
			runtime.NumGoroutine()
			<-received
			t.Logf("%d: %d rounds, kept for %d ns, %d wakes", n, before, kept, wakes)
			eventually(t, "the others go on", func() bool { return rounds.Load() > before })
			eventually(t, "the lane goes on", func() bool { return k.Kept() > kept && k.wakes.Load() > wakes })
		}
		if n := k.early.Load(); n > 0 {
			t.Errorf("%d wakes were early", n)
		}
	}
}

// TestKeepEnds: when nobody waits for a P any more, the lane stops keeping its own.
func TestKeepEnds(t *testing.T) {
	twoPs(t)
	var k *ticking
	t.Run("saturated", func(t2 *testing.T) {
		saturate(t2, 2)
		k = tick(t, LaneOptions{}, 2*time.Millisecond, nil)
		eventually(t2, "the lane keeps its P", func() bool { return k.Kept() > 0 })
	})
	eventually(t, "the lane keeps its P no longer", func() bool {
		kept, wakes := k.Kept(), k.wakes.Load()
		for k.wakes.Load() < wakes+10 {
			time.Sleep(time.Millisecond)
		}
		return k.Kept() == kept
	})
}

// TestKeepNever: no P is kept by whoever has asked for that, nor without signals for
// preemption, nor where there is only one.
func TestKeepNever(t *testing.T) {
	never := func(t *testing.T, o LaneOptions) {
		rounds := saturate(t, 4)
		k := tick(t, o, 300*time.Microsecond, nil)
		eventually(t, "many wakes", func() bool { return k.wakes.Load() > 50 && rounds.Load() > 100 })
		if d := k.Kept(); d != 0 {
			t.Errorf("the P was kept for %d ns", d)
		}
	}
	t.Run("share", func(t *testing.T) { never(t, LaneOptions{ShareP: true}) })
	t.Run("signals", func(t *testing.T) {
		// To the runtime the variable means nothing any more.
		t.Setenv("GODEBUG", "asyncpreemptoff=1")
		never(t, LaneOptions{})
	})
	t.Run("one", func(t *testing.T) {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
		never(t, LaneOptions{})
	})
}

// TestKeepIgnored: no P is kept while the program has the signal ignored that
// preempts. It runs in a process of its own: to a thread that has been sent one that
// came to nothing the runtime sends no other.
func TestKeepIgnored(t *testing.T) {
	twoPs(t)
	const child = "DETENT_TEST_IGNORED"
	if os.Getenv(child) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKeepIgnored$", "-test.v", "-test.timeout=5m")
		cmd.Env = append(os.Environ(), child+"=1")
		out, err := cmd.CombinedOutput()
		switch {
		case err != nil && len(out) == 0:
			t.Skipf("cannot start another process here: %v", err)
		case err != nil:
			t.Fatalf("%v\n%s", err, out)
		case bytes.Contains(out, []byte("--- SKIP")):
			t.Skipf("%s", out)
		}
		return
	}
	signal.Ignore(unix.SIGURG)
	if !ignored(unix.SIGURG) {
		t.Skip("it is not known here what becomes of a signal")
	}
	var end atomic.Bool
	var wg sync.WaitGroup
	for range 4 * runtime.GOMAXPROCS(0) { // which can be preempted without
		wg.Go(func() {
			for !end.Load() {
				deep()
			}
		})
	}
	defer wg.Wait()
	defer end.Store(true)
	k := tick(t, LaneOptions{}, 300*time.Microsecond, nil)
	defer k.Wait()
	defer k.Close()
	eventually(t, "many wakes", func() bool { return k.wakes.Load() > 100 })
	if d := k.Kept(); d != 0 {
		t.Errorf("the P was kept for %d ns", d)
	}
}

// TestPark: a lane that waits for a timer of package time is woken by that, by an
// earlier deadline, and by Close.
func TestPark(t *testing.T) {
	l := new(Lane) // This goroutine is the lane's.
	if err := l.open(); err != nil {
		t.Fatal(err)
	}
	park := func(to int64) {
		done := make(chan struct{})
		go func() { l.park(l.look(), to); close(done) }()
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Fatal("park does not end")
		}
	}
	at := now(t) + 2_000_000
	park(at)
	if early := at - now(t); early > 0 {
		t.Errorf("%d ns early", early)
	}
	go func() { eventually(t, "the lane parks", l.parked.Load); l.poke() }()
	park(never)
	word := l.look()
	l.poke()
	l.park(word, never) // poked before
}
