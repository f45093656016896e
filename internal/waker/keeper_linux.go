//go:build linux && !detent_portable

package waker

import (
	"os"
	"runtime/metrics"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/detent-go/detent/internal/rt"
)

// keeper decides what becomes of the P of a lane's thread while it waits.
//
// As a rule the thread enters the system call as any other, and the P is anybody's
// who has use for it. When it wakes up, it needs one: its old one if nobody has taken
// that, or one that is idle. While the scheduler is saturated there is neither, and
// the goroutine joins the end of the queue of all that are ready, for a time slice of
// 10 ms of each of those before it. No priority helps: it is not the kernel that has
// the thread wait.
//
// So while goroutines are waiting for Ps, the thread keeps its own. It waits in a
// system call that the scheduler is not told of (hold): to the scheduler it is a
// goroutine that computes. Others suffer as they would from one of those, and no
// more:
//
//   - Whoever wants to stop the world, or to have the goroutine's stack, preempts the
//     goroutine, as one that computes: by a signal, which ends the system call. It
//     then yields. Without such signals (GODEBUG=asyncpreemptoff=1) no P is kept, nor
//     while the program has SIGURG ignored, which is what the signal is.
//   - Goroutines in the P's own queue, as are those that the callbacks have made
//     ready, and the timers of the P, would starve. So the P is kept only while its
//     queue is empty, and after 8 ms at most the thread yields: what is in the
//     queue, or due, has its turn.
//
// To yield is to join the end of the P's own queue rather than that of all. It begins
// a new time slice; at the end of one the scheduler would put the goroutine into the
// queue of all. But one in 61 times a P takes its next goroutine from there, before
// its own queue: then the lane is late by one slice. That is the price of not being
// able to ask for a P.
//
// A P whose queue has others in it from before (mine is false) is not kept; to wait
// for it to be empty may take for ever, as where goroutines wake each other in
// turns. The thread then waits for a timer of package time (park), which costs it the
// P, and gives it another one, maybe with an empty queue. These timers are looked at
// whenever a P goes from one goroutine to the next, so a lane is then about as late as
// package time, but for the first time that it meets a saturated scheduler.
//
// Only the lane's goroutine touches the fields, but for parked, pokes and kept.
type keeper struct {
	never bool // constant: no P is kept

	looked    int64 // when the queues were last looked at
	score     int   // for the scheduler being saturated
	saturated bool
	deaf      bool // signals that preempt do not come

	mine    bool  // what is in the P's queue has come there since it was empty
	slice   int64 // when this goroutine's time slice began, at the latest
	slow    int   // how many yields in a row have taken long
	crowded int64 // until when the queue is taken to have no end

	sample [1]metrics.Sample
	t      *time.Timer
	parked atomic.Bool
	pokes  chan struct{} // holds one if poked while parked
	kept   atomic.Int64
}

const (
	// Before it waits, but no more often than every lookEvery, the lane looks at
	// whether goroutines wait for a P. If they do, its score rises by 1, up to
	// fullScore; if not, it falls by 2. The scheduler is saturated from when the
	// score is enterScore until it is 0. In nanoseconds.
	lookEvery  = int64(time.Millisecond)
	enterScore = 4
	fullScore  = 20

	// slowExit is how long a thread may take to get a P. If it takes longer, the score
	// is full at once.
	slowExit = int64(500 * time.Microsecond)

	// claim is how far ahead of a deadline the lane begins to keep a P: longer than
	// it mostly takes to get one.
	claim = int64(100 * time.Millisecond)

	// renewAfter is how old a time slice gets before the thread yields, if there is
	// renewTime until the deadline.
	renewAfter = int64(8 * time.Millisecond)
	renewTime  = int64(200 * time.Microsecond)

	// After mostSlow yields in a row that have taken slowYield the queue counts as
	// endless for crowdedFor.
	slowYield  = int64(time.Millisecond)
	mostSlow   = 4
	crowdedFor = int64(time.Second)

	// A thread that waits for a P with an empty queue parks for a quarter of the time
	// that there is, if that is more than parkLeast.
	parkLeast = int64(time.Millisecond)
)

func (k *keeper) open(share bool) {
	k.pokes = make(chan struct{}, 1)
	k.sample[0].Name = "/sched/goroutines/runnable:goroutines"
	k.never = share || strings.Contains(os.Getenv("GODEBUG"), "asyncpreemptoff=1")
}

// Kept returns for how long the lane has kept its P while it waited, in
// nanoseconds.
func (l *Lane) Kept() int64 { return l.kept.Load() }

// block waits until the given time of rt.Now, or until poked. It may return
// before.
func (l *Lane) block(word uint32, to int64) {
	now, _ := rt.Now()
	if !l.review(now) {
		if took := l.release(word, to); took > slowExit && l.queued() {
			l.score = fullScore
		}
		return
	}
	if to-now > claim {
		l.park(word, to-claim)
		return
	}
	if l.mine && (!canSpin(0) && now >= l.crowded || now-l.slice > renewAfter && to-now > renewTime) {
		now = l.yield(now)
	}
	l.mine = l.mine || canSpin(0)
	switch left := to - now; {
	case l.mine && canSpin(0):
		if renew := l.slice + renewAfter; renew < to-renewTime {
			to = max(renew, now)
		}
		l.hold(word, to)
	case !l.queued():
		l.release(word, to)
	case left > 4*parkLeast:
		l.park(word, now+left/4)
	default:
		l.park(word, to)
	}
}

// queued reports whether goroutines wait for a P.
func (k *keeper) queued() bool {
	metrics.Read(k.sample[:])
	v := k.sample[0].Value
	return v.Kind() == metrics.KindUint64 && v.Uint64() > 0
}

// review looks at the queues if it is time to, and returns whether the scheduler
// is saturated.
func (k *keeper) review(now int64) bool {
	if !k.never && now-k.looked >= lookEvery {
		k.looked = now
		k.count(k.queued())
		k.deaf = k.saturated && ignored(unix.SIGURG)
	}
	return k.saturated && !k.deaf
}

// count takes note of whether goroutines wait for a P.
func (k *keeper) count(queued bool) {
	if queued {
		k.score = min(k.score+1, fullScore)
	} else {
		k.score = max(k.score-2, 0)
	}
	k.saturated = k.score >= enterScore || k.saturated && k.score > 0
}

// yield yields, takes note of how long that takes, and returns the time.
func (k *keeper) yield(began int64) (now int64) {
	yield()
	now, _ = rt.Now()
	k.slice = now
	if now-began < slowYield {
		k.slow = 0
	} else if k.slow++; k.slow == mostSlow {
		k.slow, k.crowded = 0, now+crowdedFor
	}
	return now
}

// takeTurns lets others have the P.
func (l *Lane) takeTurns() {
	yield()
	now, _ := rt.Now()
	l.acquired(now)
}

// hold waits with the P.
func (l *Lane) hold(word uint32, to int64) {
	began := nanotime()
	awake, signaled := futexHold(&l.word, word, l.timespec(to))
	unmark()
	l.awakeAt = awake - l.offset
	l.kept.Add(awake - began)
	if signaled {
		now, _ := rt.Now()
		l.yield(now)
	}
}

// release waits without a P, and returns how long it took to get one then.
func (l *Lane) release(word uint32, to int64) (took int64) {
	awake := futexWait(&l.word, word, l.timespec(to))
	now := nanotime()
	l.awakeAt = awake - l.offset
	l.acquired(now - l.offset)
	return now - awake
}

// park waits for a timer of package time.
func (l *Lane) park(word uint32, to int64) {
	l.parked.Store(true)
	defer l.parked.Store(false)
	if l.look() != word {
		return // poked before whoever did could see that this has parked
	}
	now, _ := rt.Now()
	d := time.Duration(max(to-now, 0))
	if l.t == nil {
		l.t = time.NewTimer(d)
	} else {
		l.t.Reset(d)
	}
	select {
	case <-l.t.C:
	case <-l.pokes:
	}
	now, _ = rt.Now()
	l.awakeAt = min(to, now) // The kernel had no part in it.
	l.acquired(now)
}

// acquired takes note of having got a P, maybe another one.
func (k *keeper) acquired(now int64) { k.mine, k.slice = canSpin(0), now }

// unpark ends park.
func (k *keeper) unpark() {
	if k.parked.Load() {
		select {
		case k.pokes <- struct{}{}:
		default:
		}
	}
}
