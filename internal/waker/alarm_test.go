package waker

import (
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/detent-go/detent/internal/rt"
)

// owner is what a shard is to its waker: it holds a lock when it arms, and
// arms again when it is woken too early. It notes when its deadline has passed.
type owner struct {
	mu       sync.Mutex
	w        alarm
	deadline int64 // mu; never when there is none

	wakes  atomic.Int64
	passed chan int64 // holds the last deadline that has passed
	early  atomic.Int64
}

// alarm is a waker for precise times.
type alarm interface {
	Arm(at int64)
	Close()
	Wait()
}

// eachAlarm runs f for each sort of waker that there is here; open makes one, which
// f closes.
func eachAlarm(t *testing.T, f func(t *testing.T, open func(wake func()) alarm)) {
	kinds := map[string]func(wake func()) (alarm, error){
		"timerfd":  func(wake func()) (alarm, error) { return NewPrecise(Monotonic, wake) },
		"lane":     func(wake func()) (alarm, error) { return NewLane(LaneOptions{}, wake) },
		"spinning": func(wake func()) (alarm, error) { return NewLane(LaneOptions{Spin: true}, wake) },
	}
	for name, open := range kinds {
		t.Run(name, func(t *testing.T) {
			f(t, func(wake func()) alarm {
				w, err := open(wake)
				if errors.Is(err, errors.ErrUnsupported) {
					t.Skip(err)
				}
				if err != nil {
					t.Fatal(err)
				}
				return w
			})
		})
	}
}

func newOwner(t *testing.T, open func(wake func()) alarm) *owner {
	t.Helper()
	o := &owner{deadline: never, passed: make(chan int64, 1)}
	opened := make(chan struct{})
	o.w = open(func() { <-opened; o.woken() })
	close(opened)
	t.Cleanup(func() { o.w.Close(); o.w.Wait() })
	return o
}

func (o *owner) woken() {
	o.wakes.Add(1)
	now, _ := rt.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.deadline == never:
	case o.deadline <= now:
		select {
		case <-o.passed: // of one that nobody waits for
		default:
		}
		o.passed <- o.deadline
		o.deadline = never
	default:
		o.early.Add(1) // for a deadline from before
		o.w.Arm(o.deadline)
	}
}

func (o *owner) arm(at int64) {
	o.mu.Lock()
	o.deadline = at
	o.w.Arm(at)
	o.mu.Unlock()
}

// await waits until deadline at has passed for the owner.
func (o *owner) await(t *testing.T, at int64) {
	t.Helper()
	timeout := time.After(time.Minute)
	for {
		select {
		case got := <-o.passed:
			if got == at {
				return
			}
		case <-timeout:
			t.Fatalf("the wake for deadline %d was lost", at)
		}
	}
}

func now(t testing.TB) int64 {
	ns, bubbled := rt.Now()
	if bubbled {
		t.Fatal("in a bubble")
	}
	return ns
}

// TestPassed: a deadline that has passed, and the first there is, wake at once.
func TestPassed(t *testing.T) { eachAlarm(t, testPassed) }

func testPassed(t *testing.T, open func(wake func()) alarm) {
	o := newOwner(t, open)
	for _, at := range []int64{now(t), now(t) - 1, now(t) - 1_000_000_000, 0, -1, math.MinInt64 / 2} {
		o.arm(at)
		o.await(t, at)
	}
}

// TestEarlierAndLater moves the deadline in both directions while it is armed.
func TestEarlierAndLater(t *testing.T) { eachAlarm(t, testEarlierAndLater) }

func testEarlierAndLater(t *testing.T, open func(wake func()) alarm) {
	o := newOwner(t, open)
	for range 50 {
		start := now(t)
		o.arm(start + int64(time.Hour))
		o.arm(start + 300_000)
		o.await(t, start+300_000)

		start = now(t)
		o.arm(start + 200_000)
		o.arm(start + 1_000_000)
		o.await(t, start+1_000_000)
	}
	// Far ahead: nothing happens, but for what was on its way, and the next one
	// counts.
	before := o.wakes.Load()
	for _, at := range []int64{never, never - 1, far, far + 1, now(t) + int64(time.Hour)} {
		o.arm(at)
	}
	time.Sleep(5 * time.Millisecond)
	if n := o.wakes.Load() - before; n > 10 {
		t.Errorf("%d wakes for deadlines years ahead", n)
	}
	at := now(t) + 100_000
	o.arm(at)
	o.await(t, at)
}

// TestNothingLost re-arms at random, concurrently with the wakes, and every now
// and then waits for the last deadline: it always passes.
func TestNothingLost(t *testing.T) { eachAlarm(t, testNothingLost) }

func testNothingLost(t *testing.T, open func(wake func()) alarm) {
	o := newOwner(t, open)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	arms := 10_000
	if testing.Short() {
		arms = 2000
	}
	for range arms {
		at := now(t) + rng.Int64N(1<<(4+rng.IntN(16))) - 20
		o.arm(at)
		switch rng.IntN(4) {
		case 0: // the next one follows at once
		case 1:
			for until := now(t) + rng.Int64N(100_000); now(t) < until; {
				runtime.Gosched()
			}
		default:
			o.await(t, at)
		}
	}
	t.Logf("%d wakes, %d before the deadline that was current", o.wakes.Load(), o.early.Load())
}

// TestConcurrentArm lets several goroutines arm by the rules: under the lock,
// and only to earlier than what is armed. Each sees its deadline pass.
func TestConcurrentArm(t *testing.T) { eachAlarm(t, testConcurrentArm) }

func testConcurrentArm(t *testing.T, open func(wake func()) alarm) {
	type waiter struct {
		at   int64
		done chan struct{}
	}
	var mu sync.Mutex
	var waiting []waiter
	armed := int64(never)
	var p alarm
	armLocked := func(at int64) {
		if at < armed {
			armed = at
			p.Arm(at)
		}
	}
	ready := make(chan struct{})
	p = open(func() {
		<-ready
		mu.Lock()
		defer mu.Unlock()
		armed = never
		at := now(t)
		keep := waiting[:0]
		for _, w := range waiting {
			if w.at <= at {
				close(w.done)
			} else {
				keep = append(keep, w)
			}
		}
		waiting = keep
		for _, w := range waiting {
			armLocked(w.at)
		}
	})
	close(ready)
	each := 1000
	if testing.Short() {
		each = 200
	}
	var wg sync.WaitGroup
	for g := range 6 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(g), uint64(time.Now().UnixNano())))
			for range each {
				w := waiter{now(t) + rng.Int64N(200_000), make(chan struct{})}
				mu.Lock()
				waiting = append(waiting, w)
				armLocked(w.at)
				mu.Unlock()
				select {
				case <-w.done:
					if early := w.at - now(t); early > 0 {
						t.Errorf("woken %d ns early", early)
					}
				case <-time.After(time.Minute):
					t.Error("a wake was lost")
					return
				}
			}
		})
	}
	wg.Wait()
	p.Close()
	p.Wait()
}
