package netpoll114

import (
	"time"

	"github.com/detent-go/detent/lab/engine"
	"github.com/detent-go/detent/lab/internal/ksleep"
)

// States of the monitor. What leaves monitorResting wakes it, unless that is itself.
const (
	monitorNone    = iota // not started
	monitorAwake          // it looks at the P's now and again, or has ended
	monitorResting        // it waits for a task
)

// startMonitor starts the monitor. It is called with each start of a timer or task,
// as nothing is to run before the first.
func (e *Engine) startMonitor() {
	if e.monitor.Load() == monitorNone && e.monitor.CompareAndSwap(monitorNone, monitorAwake) {
		e.threads.Add(1)
		e.sys.start("lab-sysmon", e.sysmon)
	}
}

// wakeMonitor starts the monitor, or ends its rest. It is called with each task.
func (e *Engine) wakeMonitor() {
	switch e.monitor.Load() {
	case monitorNone:
		e.startMonitor()
	case monitorResting:
		if e.monitor.CompareAndSwap(monitorResting, monitorAwake) {
			e.monitorNote.Wakeup()
		}
	}
}

const (
	leastNap = 20 * time.Microsecond
	mostNap  = 10 * time.Millisecond

	// mostRest is half the time after which the runtime forces a collection.
	mostRest = time.Minute
)

// sysmon takes P's away from threads that are held up in a task, and has a thread
// look for timers that are overdue. It sleeps for 20 us at a time, and once it has
// found nothing to do for 50 times, for twice as long each time, up to 10 ms. While
// all P's are idle it rests until a task begins or a timer is due.
func (e *Engine) sysmon() {
	defer e.threads.Add(-1)
	nap, dull := leastNap, 0
	for !e.closing.Load() {
		if dull > 50 {
			nap = min(2*nap, mostNap)
		}
		e.nanosleeps.Add(1)
		ksleep.Nanosleep(nap)
		now, next := engine.Now(), e.sleepUntil()
		if e.allIdle() {
			if next > now && e.restMonitor(next-now) {
				now, next = engine.Now(), e.sleepUntil()
			}
			nap, dull = leastNap, 0
		}
		if next < now {
			// Perhaps the P whose timer it is has a thread that is held up.
			e.startThread(nil, false)
		}
		if dull++; e.retake(now) {
			nap, dull = leastNap, 0
		}
	}
}

func (e *Engine) allIdle() bool { return int(e.nidle.Load()) == len(e.procs) }

// sleepUntil is timeSleepUntil: it returns when the next timer is due, Infinite if
// there is none.
func (e *Engine) sleepUntil() int64 {
	next := int64(engine.Infinite)
	for _, p := range e.procs {
		if when := p.timers.until(); when != 0 {
			next = min(next, when)
		}
	}
	return next
}

// restMonitor waits until a task begins or for d, and reports true; or false if a
// task may have begun already.
func (e *Engine) restMonitor(d int64) bool {
	e.monitorNote.Clear()
	e.monitor.Store(monitorResting)
	if (!e.allIdle() || e.closing.Load()) && e.monitor.CompareAndSwap(monitorResting, monitorAwake) {
		return false
	}
	if !e.monitorNote.Sleep(time.Duration(min(d, int64(mostRest)))) && !e.monitor.CompareAndSwap(monitorResting, monitorAwake) {
		e.monitorNote.Sleep(-1) // whoever was faster is about to wake it
	}
	return true
}

// retake takes each P that has been in one task since the last look at least, and
// hands it to another thread; but for one with nothing else to do, while there are
// other P's without work, for another 10 ms.
func (e *Engine) retake(now int64) (any bool) {
	for _, p := range e.procs {
		word := p.word.Load()
		if word&isWhat != inTask {
			continue
		}
		if word != p.seen {
			p.seen, p.since = word, now
			continue
		}
		if p.runq.len() == 0 && e.nspinning.Load()+e.nidle.Load() > 0 && now-p.since < int64(mostNap) {
			continue
		}
		if p.leaveTask(word, inUse) {
			e.handOff(p)
			any = true
		}
	}
	return any
}
