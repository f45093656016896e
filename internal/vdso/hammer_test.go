//go:build linux && (amd64 || arm64) && !detent_portable

package vdso

import (
	"flag"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

var hammerFor = flag.Duration("hammer", 500*time.Millisecond, "how long TestHammer runs")

// TestHammer reads every clock from goroutines whose stacks grow at every depth,
// under garbage collections, preemptions, stack dumps, and thousands of signals
// a second to every thread: SIGPROF for the profiler's unwinder, SIGWINCH for a
// handler that needs the goroutine. Run it with -race as well, and with
// -hammer 10m after a change to the assembly.
func TestHammer(t *testing.T) {
	needVDSO(t)
	if err := pprof.StartCPUProfile(io.Discard); err != nil {
		t.Skip("a profile is being taken already:", err)
	}
	defer pprof.StopCPUProfile()
	notified := make(chan os.Signal, 1)
	signal.Notify(notified, unix.SIGWINCH)
	defer signal.Stop(notified)
	defer debug.SetGCPercent(debug.SetGCPercent(5))

	var stop atomic.Bool
	var readings, descents, signals, collections atomic.Uint64
	var group sync.WaitGroup
	// Readers that never leave the loop except in the vDSO.
	for _, id := range ids {
		group.Go(func() {
			n, last := uint64(0), int64(0)
			for ; !stop.Load(); n++ {
				ns, ok := Now(id)
				if !ok || ns < last {
					t.Errorf("clock %d: %d, %v after %d", id, ns, ok, last)
					break
				}
				last = ns
			}
			readings.Add(n)
		})
	}
	// Fresh goroutines, so that the stack grows on the way down.
	group.Go(func() {
		for depth := 1; !stop.Load(); depth = depth%400 + 1 {
			var each sync.WaitGroup
			for _, id := range ids {
				each.Go(func() { plunge(t, id, depth) })
			}
			each.Wait()
			descents.Add(uint64(len(ids)))
		}
	})
	group.Go(func() {
		dump := make([]byte, 1<<16)
		for !stop.Load() {
			runtime.GC()
			runtime.Stack(dump, true)
			collections.Add(1)
		}
	})
	group.Go(func() {
		signals.Add(shower(t, &stop))
	})
	began := time.Now()
	time.Sleep(*hammerFor)
	stop.Store(true)
	group.Wait()
	elapsed := time.Since(began).Seconds()
	t.Logf("%.1f s: %d million readings, %d descents, %d collections, %.0f signals a second",
		elapsed, readings.Load()/1e6, descents.Load(), collections.Load(), float64(signals.Load())/elapsed)
	if readings.Load() == 0 || descents.Load() == 0 || collections.Load() == 0 || signals.Load() == 0 {
		t.Error("one of the parts did nothing")
	}
}

// plunge reads a clock at each level of a recursion with frames of many sizes.
//
//go:noinline
func plunge(t *testing.T, id int32, depth int) {
	var frame [7]uint64
	frame[depth%len(frame)] = uint64(depth)
	before, ok := Now(id)
	if depth > 0 {
		if depth%3 == 0 {
			plungeWide(t, id, depth-1)
		} else {
			plunge(t, id, depth-1)
		}
	}
	after, ok2 := Now(id)
	if !ok || !ok2 || after < before || frame[depth%len(frame)] != uint64(depth) {
		t.Errorf("clock %d at depth %d: %d, then %d", id, depth, before, after)
	}
}

//go:noinline
func plungeWide(t *testing.T, id int32, depth int) {
	var frame [100]uint64
	frame[depth%len(frame)] = uint64(depth)
	plunge(t, id, depth)
	if frame[depth%len(frame)] != uint64(depth) {
		t.Errorf("depth %d: the frame has changed", depth)
	}
}

// shower sends signals to all threads of the process, 10,000 a second together,
// and returns how many. When the sender itself does not get its turn it makes
// up for it, so that the rate holds on a busy machine.
func shower(t *testing.T, stop *atomic.Bool) (sent uint64) {
	runtime.LockOSThread()
	// Not unlocked: the thread ends, and its timer slack with it.
	unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	pid, self := unix.Getpid(), unix.Gettid()
	const period = 100 * time.Microsecond
	pause := unix.NsecToTimespec(int64(period))
	began := time.Now()
	for round := 0; !stop.Load(); round++ {
		tasks, err := os.ReadDir("/proc/self/task") // threads come and go
		if err != nil {
			t.Error(err)
			return sent
		}
		for ; sent < uint64(time.Since(began)/period) && !stop.Load(); round++ {
			for i, task := range tasks {
				tid, _ := strconv.Atoi(task.Name())
				sig := unix.SIGPROF
				if (round+i)%8 == 0 {
					sig = unix.SIGWINCH
				}
				if tid != self && unix.Tgkill(pid, tid, sig) == nil {
					sent++
				}
			}
		}
		unix.Nanosleep(&pause, nil)
	}
	return sent
}
