//go:build linux && !detent_portable

package waker

import (
	"bytes"
	"os"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/detent-go/detent/internal/rt"
)

// watched is n timerfds and a witness for them.
func watched(t *testing.T, n int) (*Witness, []*Precise) {
	t.Helper()
	w, err := NewWitness(n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close(); w.Wait() })
	files := make([]*Precise, n)
	for k := range files {
		p, err := NewPrecise(Monotonic, func() {})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Close(); p.Wait() })
		if err := w.Watch(k, p); err != nil {
			t.Fatal(err)
		}
		files[k] = p
	}
	return w, files
}

// TestWitness: the thread is woken for each file, not before its deadline; until
// then it says that it has not.
func TestWitness(t *testing.T) {
	const n = 5
	w, files := watched(t, n)
	settle(t, "the thread to wait", func() bool { return w.since.Load() != never })
	told := 0
	for round := range 40 {
		k := round % n
		at := now(t) + int64(3*time.Millisecond)
		files[k].Arm(at)
		if woke, ok := w.Woken(k, at, at-1); ok && woke != at-1 {
			t.Fatalf("woken %v before the deadline", time.Duration(at-woke))
		}
		settle(t, "the thread to be woken", func() bool { return w.seen[k].at.Load() >= at })
		woke, ok := w.Woken(k, at, now(t))
		if ok {
			told++
			if woke < at || woke > now(t) {
				t.Fatalf("armed for %d, woken at %d, now %d", at, woke, now(t))
			}
		}
		for other := range n {
			if other != k && w.seen[other].at.Load() >= at {
				t.Errorf("file %d expired instead of %d", other, k)
			}
		}
	}
	t.Logf("told %d times of 40", told)
}

// TestWitnessRests: the thread does not tell of what expires while it does not
// wait, nor of a deadline from before it waited.
func TestWitnessRests(t *testing.T) {
	w, files := watched(t, 1)
	settle(t, "the thread to wait", func() bool { return w.since.Load() != never })
	w.since.Store(never)
	if _, ok := w.Woken(0, now(t), now(t)); ok {
		t.Error("it tells although it does not wait")
	}
	at := now(t)
	w.since.Store(at + 1)
	if _, ok := w.Woken(0, at, at+2); ok {
		t.Error("it tells of a deadline from before it waited")
	}
	w.seen[0].since.Store(at + 1)
	w.seen[0].at.Store(at + 2)
	if _, ok := w.Woken(0, at, at+3); ok {
		t.Error("it tells of a deadline from before it waited, although it was woken since")
	}
	if woke, ok := w.Woken(0, at+1, at+3); !ok || woke != at+2 {
		t.Errorf("woken at %d, %v; want %d", woke, ok, at+2)
	}
	// However often a file expires, the thread rests after every other wake at
	// least.
	wakes, last := 0, w.seen[0].at.Load()
	begin := now(t)
	for now(t) < begin+int64(30*time.Millisecond) {
		files[0].Arm(now(t))
		if at := w.seen[0].at.Load(); at != last {
			last = at
			wakes++
		}
	}
	if took := now(t) - begin; int64(wakes) > 2*(took/restFor+1) {
		t.Errorf("woken %d times in %v", wakes, time.Duration(took))
	}
}

// TestWitnessBusy has the thread at work while the collector runs, stacks are
// scanned and dumped, and the profiler's signals arrive.
func TestWitnessBusy(t *testing.T) {
	w, files := watched(t, 4)
	var profile bytes.Buffer
	if err := pprof.StartCPUProfile(&profile); err == nil {
		defer pprof.StopCPUProfile()
	}
	var stop atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		buf := make([]byte, 1<<16)
		for !stop.Load() {
			runtime.GC()
			runtime.Stack(buf, true)
			_ = pprof.Lookup("goroutine").WriteTo(&bytes.Buffer{}, 0)
			time.Sleep(time.Millisecond)
		}
	})
	for k, p := range files {
		wg.Go(func() {
			for !stop.Load() {
				at := now(t) + int64(200*time.Microsecond)
				p.Arm(at)
				time.Sleep(1300 * time.Microsecond)
				if woke, ok := w.Woken(k, at, now(t)); ok && woke < at {
					t.Errorf("woken %d ns before the deadline", at-woke)
				}
			}
		})
	}
	time.Sleep(300 * time.Millisecond)
	stop.Store(true)
	wg.Wait()
}

// TestWitnessClose leaves neither a goroutine nor a file behind, whether the
// thread waits or rests.
func TestWitnessClose(t *testing.T) {
	p, err := NewPrecise(Monotonic, func() {})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { p.Close(); p.Wait() }()
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	for k := range 50 {
		w, err := NewWitness(1)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Watch(0, p); err != nil {
			t.Fatal(err)
		}
		if k%2 == 1 {
			p.Arm(now(t) + 1000)
			time.Sleep(100 * time.Microsecond)
		}
		w.Close()
		w.Wait()
	}
	if n := openFiles(t); n != files {
		t.Errorf("%d files are open, %d were", n, files)
	}
	settle(t, "the goroutines to end", func() bool { return runtime.NumGoroutine() <= goroutines })
}

// openFiles counts the files other than those of the file system that are open.
func openFiles(t *testing.T) (n int) {
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip(err)
	}
	for _, f := range files {
		if to, err := os.Readlink("/proc/self/fd/" + f.Name()); err == nil && strings.HasPrefix(to, "anon_inode:") {
			n++
		}
	}
	return n
}

// TestZero: what the thread reads is rt.Now's time.
func TestZero(t *testing.T) {
	z := zero()
	for range 1000 {
		before, _ := rt.Now()
		at := nanotime() - z
		after, _ := rt.Now()
		if at < before-1_000_000 || at > after+1_000_000 {
			t.Fatalf("%d is not from %d to %d", at, before, after)
		}
	}
}
