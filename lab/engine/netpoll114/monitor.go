package netpoll114

import (
	"time"

	"github.com/detent-go/detent/lab/engine"
	"github.com/detent-go/detent/lab/internal/ksleep"
)

// States of the monitor.
const (
	monitorNone    = iota // not started
	monitorAwake          // it looks at the P's now and again, or has ended
	monitorResting        // it waits for a task
)

// wakeMonitor starts the monitor, or ends its rest. It is called with each task.
func (e *Engine) wakeMonitor() {
	switch e.monitor.Load() {
	case monitorNone:
		if e.monitor.CompareAndSwap(monitorNone, monitorAwake) {
			e.threads.Add(1)
			e.sys.start("lab-sysmon", e.sysmon)
		}
	case monitorResting:
		if e.monitor.CompareAndSwap(monitorResting, monitorAwake) {
			e.monitorNote.Wakeup()
		}
	}
}

const (
	leastNap = 20 * time.Microsecond
	mostNap  = 10 * time.Millisecond
)

// sysmon takes P's away from threads that are held up in a task. It sleeps for 20 us
// at a time, and once it has found nothing to do for 50 times, for twice as long each
// time, up to 10 ms. While all P's are idle it rests.
func (e *Engine) sysmon() {
	defer e.threads.Add(-1)
	nap, dull := leastNap, 0
	for !e.closing.Load() {
		if dull > 50 {
			nap = min(2*nap, mostNap)
		}
		e.nanosleeps.Add(1)
		ksleep.Nanosleep(nap)
		if e.allIdle() && e.restMonitor() {
			nap, dull = leastNap, 0
			continue
		}
		if dull++; e.retake(engine.Now()) {
			nap, dull = leastNap, 0
		}
	}
}

func (e *Engine) allIdle() bool { return int(e.nidle.Load()) == len(e.procs) }

// restMonitor waits until a task begins, and reports true; or false if one may have
// begun already.
func (e *Engine) restMonitor() bool {
	e.monitorNote.Clear()
	e.monitor.Store(monitorResting)
	if (!e.allIdle() || e.closing.Load()) && e.monitor.CompareAndSwap(monitorResting, monitorAwake) {
		return false
	}
	e.monitorNote.Sleep(-1)
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
