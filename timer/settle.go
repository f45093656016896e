package timer

import (
	"runtime"
	"runtime/metrics"
	"sync/atomic"
	"time"

	"github.com/detent-go/detent/internal/rt"
)

// settler finds out whether all goroutines wait, by what the scheduler counts.
//
// One in a system call may be about to return, as from writing a line, or may
// never return. So a system call is waited for, until it has been seen so often
// that it counts as waiting; how many there are of that sort is remembered, until
// there are fewer.
type settler struct{ calls atomic.Uint64 }

// fewer takes note of how many goroutines are in system calls: no more than those can
// be there for good.
func (s *settler) fewer(calls uint64) {
	for known := s.calls.Load(); calls < known; known = s.calls.Load() {
		if s.calls.CompareAndSwap(known, calls) {
			return
		}
	}
}

const (
	// settledLooks is how many looks in a row have to find every other goroutine
	// waiting. One might find a goroutine on its way from one P to another.
	settledLooks = 3

	// settledCalls is how many looks in a row have to find the same number of
	// goroutines in system calls until these count as waiting, a tenth of a second
	// in all.
	settledCalls = 100

	// settleYield is how many looks are made until others get to run: at once if
	// one is ready to, but seldom otherwise, since the P that is yielded makes the
	// scheduler have another look around for work, which counts as running.
	settleYield = 64

	// settlePauses is how many looks are made without a pause while goroutines
	// run, and settleLooks how many in all. Pauses grow to settlePause. Looks are
	// counted, rather than time, so that a machine that stands still for a while
	// does not use them up. In a bubble, where a pause would move the bubble's
	// time, there are settleBubble times as many instead.
	settlePauses = 2000
	settleLooks  = settlePauses + 10_000
	settlePause  = time.Millisecond
	settleBubble = 1000
)

// Settle waits until every other goroutine of the process waits for something: a
// channel, a lock, a timer, a socket. So all that the last Advance has set going
// has gone as far as it can without the clock moving on. It returns true then; or
// false if goroutines keep running for some ten seconds.
//
// It is about the whole process: tests that run beside each other, by t.Parallel,
// hold each other up. A goroutine that is in a system call or a call of C for more
// than a tenth of a second counts as one that waits, for it may never return. So
// does one that waits for a real timer, or for another process. In a callback
// Settle does not wait for the callback itself.
//
// What a goroutine has done before it last called a method of the service or of
// its timers, a Sleep for instance, happens before Settle returns. Other than that
// Settle orders nothing for the race detector: what a goroutine shares with the
// test beyond that needs a lock or an atomic, as ever.
func (m *Manual) Settle() bool {
	if !m.settler.settle(settleLooks) {
		return false
	}
	m.group.Pending() // takes the locks that those have held
	return true
}

func (s *settler) settle(looks int) bool {
	sample := []metrics.Sample{
		{Name: "/sched/goroutines/running:goroutines"},
		{Name: "/sched/goroutines/runnable:goroutines"},
		{Name: "/sched/goroutines/not-in-go:goroutines"},
	}
	_, inBubble := rt.Now()
	settledCalls := settledCalls
	if inBubble {
		looks *= settleBubble
		settledCalls *= settleBubble
	}
	pause := 10 * time.Microsecond
	found, inCalls, calls := 0, 0, uint64(0)
	for look := range looks {
		metrics.Read(sample)
		running, runnable := sample[0].Value.Uint64(), sample[1].Value.Uint64()
		before := calls
		calls = sample[2].Value.Uint64()
		s.fewer(calls)
		idle := running <= 1 && runnable == 0
		switch {
		case !idle:
			found, inCalls = 0, 0
		case calls <= s.calls.Load():
			if found++; found == settledLooks {
				return true
			}
			continue
		case calls == before:
			if inCalls++; inCalls == settledCalls {
				s.calls.Store(calls)
				return true
			}
		default:
			found, inCalls = 0, 0
		}
		switch {
		case (idle || look >= settlePauses) && !inBubble:
			time.Sleep(pause)
			pause = min(2*pause, settlePause)
		case runnable > 0 || look%settleYield == settleYield-1:
			runtime.Gosched()
		}
	}
	return false
}
