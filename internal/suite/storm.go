package suite

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/pprof"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// stormGoroutines is how many goroutines more a storm of a million timers may make
// in an engine that bounds them. On an idle machine it is a few; but an engine that
// starts more of them where callbacks block takes some for blocked that a busy
// machine does not let run.
const stormGoroutines = 4096

// Very many timers that are due at the same time: none is lost, none is early,
// none fires twice, and the engine does not make a goroutine of each.
func testStorm(t *testing.T, e Engine) {
	testNothingLeft(t, e)
	_, unbounded := e.Lacks[BoundedStorm]
	n := e.size(1_000_000)
	if unbounded {
		// A goroutine each: keep to what the machine's memory holds.
		n = min(n, 100_000)
	}
	fired := make([]atomic.Uint32, n)
	var total, early atomic.Int64
	var most atomic.Int64
	sample := func() {
		for now := int64(runtime.NumGoroutine()); ; {
			old := most.Load()
			if now <= old || most.CompareAndSwap(old, now) {
				return
			}
		}
	}
	quit := make(chan struct{})
	var sampler sync.WaitGroup
	sampler.Go(func() {
		for {
			select {
			case <-quit:
				return
			default:
				sample()
				time.Sleep(500 * time.Microsecond)
			}
		}
	})

	before := int64(runtime.NumGoroutine())
	base := time.Now()
	due := 500*time.Millisecond + time.Duration(n)*time.Microsecond
	begin := time.Now()
	for i := range n {
		e.AfterFunc(due-time.Since(base), func() {
			if time.Since(base) < due {
				early.Add(1)
			}
			fired[i].Add(1)
			if total.Add(1)%64 == 0 {
				sample()
			}
		})
	}
	started := time.Since(begin)
	Eventually(t, "every timer of the storm fired", func() bool { return total.Load() >= int64(n) })
	late := time.Since(base) - due
	settle()
	close(quit)
	sampler.Wait()

	lost, twice := 0, 0
	for i := range fired {
		switch fired[i].Load() {
		case 0:
			lost++
		case 1:
		default:
			twice++
		}
	}
	if lost != 0 || twice != 0 || early.Load() != 0 {
		t.Errorf("of %d timers due at once %d were lost, %d fired twice, %d early", n, lost, twice, early.Load())
	}
	more := most.Load() - before
	t.Logf("%d timers due at once, started in %v: the last fired %v late, %d goroutines more", n, started, late, more)
	if !unbounded && more > stormGoroutines {
		t.Errorf("%d goroutines more, want at most %d", more, stormGoroutines)
	}
}

// testNothingLeft waits until the goroutines have ended that fired timers and ran
// functions in the tests so far: an idle engine keeps a few for each P.
func testNothingLeft(t *testing.T, e Engine) {
	most := e.goroutines + 2*runtime.GOMAXPROCS(0) + 4
	Eventually(t, fmt.Sprintf("at most %d goroutines, after %d before the tests", most, e.goroutines), func() bool {
		return runtime.NumGoroutine() <= most
	})
}

// sleeperThreads is how many threads more any number of sleeps may cost: what
// the runtime itself adds when it has much to do.
const sleeperThreads = 16

// Very many precise sleeps at once cost no threads: all wake, none early.
func testSleepers(t *testing.T, e Engine) {
	n := e.size(100_000)
	var wg sync.WaitGroup
	var early, woken atomic.Int64
	worst := make([]time.Duration, 64)
	var mu sync.Mutex
	before := Threads()
	for i := range n {
		// In the range that is precise without being asked for.
		d := 5*time.Millisecond + time.Duration(rand.Int64N(int64(295*time.Millisecond)))
		wg.Go(func() {
			start := time.Now()
			e.Sleep(d)
			late := time.Since(start) - d
			if late < 0 {
				early.Add(1)
			}
			woken.Add(1)
			if i%100 == 0 {
				mu.Lock()
				worst = append(worst, late)
				mu.Unlock()
			}
		})
	}
	during := Threads()
	wait(t, "every sleeper woke", &wg)
	after := max(during, Threads())
	if early.Load() != 0 || woken.Load() != int64(n) {
		t.Errorf("of %d sleepers %d woke, %d early", n, woken.Load(), early.Load())
	}
	t.Logf("%d sleepers: %d threads before, at most %d seen after", n, before, after)
	logLateness(t, "sleeps of 5..300ms", worst[64:])
	if after > before+sleeperThreads {
		t.Errorf("%d threads before, %d after %d sleeps, want at most %d more", before, after, n, sleeperThreads)
	}
}

// Threads is the number of threads of this process: those there are where the
// system says so, or else those that have ever been made.
func Threads() int {
	if status, err := os.ReadFile("/proc/self/status"); err == nil {
		if _, rest, ok := bytes.Cut(status, []byte("\nThreads:")); ok {
			line, _, _ := bytes.Cut(rest, []byte("\n"))
			if n, err := strconv.Atoi(string(bytes.TrimSpace(line))); err == nil {
				return n
			}
		}
	}
	return pprof.Lookup("threadcreate").Count()
}
