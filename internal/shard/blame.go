package shard

import "github.com/detent-go/detent/internal/hist"

// Blame is lateness split by what caused it. For every timer the parts add up
// to its lateness exactly:
//
//	deadline    limit       ready       running             fired
//	   |--slack---|--kernel---|-scheduler-|-------queue--------|
//
// A limit that passes while somebody of the shard is at work already has only
// queue behind it. Where ready is not known, kernel and scheduler are one part,
// Wakeup. A runner that has been started but has not come to run adds to the
// scheduler's part. Throttled is taken out of these.
//
// A value of 0 is not recorded: [Blame.fill] counts these.
type Blame struct {
	Slack  hist.Hist // deadline to limit
	Wakeup hist.Hist // of timers with kernel and scheduler not told apart, those two
	Queue  hist.Hist // running to fired

	// Told is the parts of timers with kernel and scheduler told apart, and
	// Throttled what of these, or of Wakeup, the process was kept from running by
	// its quota. They are nil where there can be none, or have been none yet.
	Told      *Told
	Throttled *hist.Hist
}

// Told is the blame where kernel and scheduler are told apart.
type Told struct {
	Count     uint64    // timers
	Kernel    hist.Hist // armed time to ready
	Scheduler hist.Hist // ready to running, and waits of runners to begin
}

// wakeup is how somebody came to fire timers: the times, of the group's clock and
// in this order, from which on the shard waited for another to act.
type wakeup struct {
	armed   int64 // for the kernel and the Go scheduler: it was to be woken now
	running int64 // for nobody: the waker ran
	handed  int64 // for the Go scheduler: the waker had started a runner
	begun   int64 // for nobody: the runner ran; 0 before

	// Of timers with a limit of toldFrom or later it is known when the kernel had
	// done its part for them, ready; it was armed for them at toldArmed. never where
	// that is not known for any.
	toldFrom, toldArmed, ready int64

	// throttled is how much of the waits before throttledTo the process was throttled.
	throttled, throttledTo int64

	deadline int64 // of the timer fired last
}

// atWork returns the wakeup of somebody who has been running and needed none.
func atWork(now int64) wakeup {
	return wakeup{armed: now, running: now, handed: now, begun: now, toldFrom: never}
}

// blameQuota asks what part of a wait, from..to, the process was throttled, and
// adds it to w. The caller does not hold the lock, and nobody else uses w.
func (s *Shard) blameQuota(w *wakeup, from, to int64) {
	t := s.group.throttle.during(from, to)
	if t == 0 {
		return
	}
	w.throttled, w.throttledTo = w.throttled+t, to
	s.Lock()
	first := s.blame.Throttled == nil
	s.Unlock()
	if first {
		h := new(hist.Hist)
		s.Lock()
		if s.blame.Throttled == nil {
			s.blame.Throttled = h
		}
		s.Unlock()
	}
}

// overlap returns how much of from..to lies after at.
func overlap(at, from, to int64) int64 { return max(to-max(at, from), 0) }

// record splits the lateness of a timer that is fired at the time now.
func (b *Blame) record(w *wakeup, deadline, limit, now int64) {
	limit = min(max(limit, deadline), now)
	if d := limit - deadline; d > 0 {
		b.Slack.Record(d)
	}
	queue := now - limit
	// A clock that has been set back meanwhile puts these out of order.
	if limit < w.begun && w.running <= w.handed && w.handed <= w.begun && w.begun <= now {
		queue -= b.recordWait(w, limit)
	}
	if queue > 0 {
		b.Queue.Record(queue)
	}
	if limit >= w.toldFrom {
		b.Told.Count++
	}
}

// recordWait records by how much a timer with the given limit had to wait for
// the wakeup, and returns it.
func (b *Blame) recordWait(w *wakeup, limit int64) int64 {
	told := limit >= w.toldFrom
	kernel, scheduler := int64(0), overlap(limit, w.handed, w.begun)
	if told {
		kernel = overlap(limit, w.toldArmed, w.ready)
		scheduler += overlap(limit, max(w.ready, w.toldArmed), w.running)
	} else {
		scheduler += overlap(limit, w.armed, w.running)
	}
	all := kernel + scheduler
	if t := min(w.throttled, all, overlap(limit, 0, w.throttledTo)); t > 0 {
		b.Throttled.Record(t)
		// It shows in the greater part first.
		if kernel > scheduler {
			took := min(t, kernel)
			kernel, scheduler = kernel-took, scheduler-(t-took)
		} else {
			took := min(t, scheduler)
			kernel, scheduler = kernel-(t-took), scheduler-took
		}
	}
	if !told {
		if kernel+scheduler > 0 {
			b.Wakeup.Record(kernel + scheduler)
		}
		return all
	}
	if kernel > 0 {
		b.Told.Kernel.Record(kernel)
	}
	if scheduler > 0 {
		b.Told.Scheduler.Record(scheduler)
	}
	return all
}

// add adds what o has recorded.
func (b *Blame) add(o *Blame) {
	b.Slack.Add(&o.Slack)
	b.Wakeup.Add(&o.Wakeup)
	b.Queue.Add(&o.Queue)
	if o.Told != nil {
		if b.Told == nil {
			b.Told = new(Told)
		}
		b.Told.Count += o.Told.Count
		b.Told.Kernel.Add(&o.Told.Kernel)
		b.Told.Scheduler.Add(&o.Told.Scheduler)
	}
	if o.Throttled != nil {
		if b.Throttled == nil {
			b.Throttled = new(hist.Hist)
		}
		b.Throttled.Add(o.Throttled)
	}
}

// fill counts the timers with a value of 0, of so many in all.
func (b *Blame) fill(all uint64) {
	fill(&b.Slack, all)
	fill(&b.Queue, all)
	if b.Told != nil {
		fill(&b.Wakeup, all-b.Told.Count)
		fill(&b.Told.Kernel, b.Told.Count)
		fill(&b.Told.Scheduler, b.Told.Count)
	} else {
		fill(&b.Wakeup, all)
	}
	if b.Throttled == nil {
		b.Throttled = new(hist.Hist)
	}
	fill(b.Throttled, all)
}

func fill(h *hist.Hist, all uint64) {
	h.Counts[0] += all - h.Count
	h.Count = all
}
