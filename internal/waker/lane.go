package waker

import (
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/detent-go/detent/internal/rt"
)

// LaneOptions is what the thread of a [Lane] is to be like.
type LaneOptions struct {
	Priority   int   // of SCHED_FIFO, 1 to 99; 0 for none
	CPUs       []int // the CPUs that it may run on; nil for all
	LockMemory bool  // keep the process's memory from being paged out
	Spin       bool  // sleep short of a deadline, and spin the rest
	ShareP     bool  // never keep the P while waiting
}

// Lane is a goroutine locked to an OS thread of its own, which waits in the
// kernel and calls wake there when a deadline has passed.
//
// # Ground rules
//
// The goroutine waits for one deadline at a time, and says which in until. Arm
// stores armed, and then looks at until; the goroutine stores until, and then looks
// at armed. So at least one of them sees the other: either Arm wakes the thread,
// or the goroutine does not go to wait. A wake-up between the look and the wait is
// not lost because the wait begins only if word is as it was before the look.
//
// The goroutine is the only one to touch the fields below it, but for spun.
type Lane struct {
	wake   func()
	o      LaneOptions
	armed  atomic.Int64 // rt.Now time of the last Arm that wake has not followed
	until  atomic.Int64 // rt.Now time that the thread waits for, or awake
	closed atomic.Bool
	blocker

	done     chan struct{} // closed when the last goroutine has ended
	detached bool          // Wait does not wait; of whoever calls Replace, Close and Wait

	mu  sync.Mutex
	err error // why the present thread is not as asked for

	spinner Spinner
	awakeAt int64
}

// oneThread says that goroutines share one thread and are not preempted.
const oneThread = runtime.GOOS == "js" || runtime.GOOS == "wasip1"

const (
	// A lane that has not waited for laneRest in one go, for laneTurn, lets others
	// have its P: it is due again whenever it has seen to what was due, or nearly so,
	// and the scheduler cannot take the P away (see streak). One that waits for longer
	// now and then can be preempted, and its P taken, as any goroutine's that makes
	// system calls; to yield then would cost it its place for nothing, a time slice of
	// each goroutine in the queue. In nanoseconds.
	laneRest = int64(100_000)
	laneTurn = int64(8 * time.Millisecond)
)

// awake is what until holds while the thread does not wait.
const awake = math.MinInt64

// NewLane starts the goroutine, on a thread that is as the options say, and
// returns the first error in making it so: errors.ErrUnsupported for what is not to
// be had on this system or in this build, fs.ErrPermission for what this process
// may not do.
func NewLane(o LaneOptions, wake func()) (*Lane, error) {
	l := &Lane{wake: wake, o: o, done: make(chan struct{})}
	l.armed.Store(never)
	l.until.Store(awake)
	if err := l.open(); err != nil {
		return nil, err
	}
	ready := make(chan error)
	go l.run(ready)
	if err := <-ready; err != nil {
		return nil, err
	}
	return l, nil
}

// TryLane returns the error of NewLane without making a lane: the thread ends at
// once.
func TryLane(o LaneOptions) error {
	result := make(chan error)
	go onThread(func() { result <- o.apply() })
	return <-result
}

// run waits and calls wake until the lane is closed. Should wake end the goroutine
// (runtime.Goexit in a callback), and so its thread, another one takes over. The
// goroutine ends locked, and the thread with it: what has been set for the
// thread is never seen by another goroutine.
func (l *Lane) run(ready chan<- error) {
	rt.Unlabel()
	onThread(func() {
		err := l.o.apply()
		if ready != nil {
			ready <- err
			if err != nil {
				return
			}
		} else {
			l.mu.Lock()
			l.err = err
			l.mu.Unlock()
		}
		defer func() {
			if l.closed.Load() {
				close(l.done)
				return
			}
			go l.run(nil)
		}()
		// since is when others last had their turn, or could have, and from when it
		// waits, or 0.
		since, from := int64(math.MinInt64), int64(0)
		for !l.closed.Load() {
			at := l.armed.Load()
			now, _ := rt.Now()
			if since == math.MinInt64 || from != 0 && now-from >= laneRest {
				since = now
			}
			from = 0
			if now-since >= laneTurn {
				l.takeTurns()
				since, _ = rt.Now()
				continue
			}
			if at > now {
				from = now
				l.await(at, now)
				continue
			}
			// What is armed meanwhile is not lost: wake arms again.
			l.armed.Store(never)
			l.wake()
			if oneThread {
				runtime.Gosched() // It may be due again already, for ever.
			}
		}
	})
}

// onThread calls f on the calling goroutine, locked to a thread that ends with it,
// or on another such goroutine.
func onThread(f func()) {
	runtime.LockOSThread()
	if !mainThread() {
		f()
		return
	}
	// The main thread cannot end. As long as it is locked to this goroutine the
	// other one runs on another thread.
	begun := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		close(begun)
		f()
	}()
	<-begun
	runtime.UnlockOSThread()
}

// await waits until the given time, or until something is armed that may be
// earlier.
func (l *Lane) await(at, now int64) {
	to := at
	if l.o.Spin {
		to -= l.spinner.Margin()
	}
	slept := to > now
	if slept {
		word := l.look()
		l.until.Store(at)
		if l.armed.Load() != at || l.closed.Load() {
			l.until.Store(awake)
			return
		}
		l.block(word, to)
		l.until.Store(awake)
	}
	if !l.o.Spin {
		return
	}
	now, _ = rt.Now()
	if now < to {
		return // woken for something else
	}
	if to < at {
		began := now
		for now < at && l.armed.Load() == at && !l.closed.Load() {
			now, _ = rt.Now()
		}
		l.spinner.Spun(now - began)
		now = began
	}
	if slept { // A deadline that was nearer than the margin tells nothing.
		l.spinner.Learn(now - to)
	}
}

// Arm makes the lane call wake at the given time of [rt.Now], instead of when it
// was last armed for. It does not block; the holder of the shard lock calls it.
func (l *Lane) Arm(at int64) {
	l.armed.Store(at)
	if at < l.until.Load() {
		l.poke()
	}
}

// AwakeAt returns the time of [rt.Now] at which the kernel last made the thread
// run, before the Go scheduler gave it a P; or, where that cannot be told, at
// which the goroutine ran. It is for wake.
func (l *Lane) AwakeAt() int64 { return l.awakeAt }

// Spun returns for how long the lane has spun, in nanoseconds.
func (l *Lane) Spun() int64 { return l.spinner.Total() }

// Err returns why the thread is not as asked for: nil, but where another one had to
// take over and could not be made like the first.
func (l *Lane) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Replace says that wake is being called, or may be, and that Wait is not to wait
// for it.
func (l *Lane) Replace() { l.detached = true }

// Close ends the lane: wake is not called any more.
func (l *Lane) Close() {
	l.closed.Store(true)
	l.poke()
}

// Wait returns when the goroutine has ended.
func (l *Lane) Wait() {
	if !l.detached {
		<-l.done
	}
}
