package shard

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/detent-go/detent/internal/hist"
)

// parts is what Blame says of one timer.
type parts struct{ slack, wakeup, kernel, scheduler, throttled, queue int64 }

func (p parts) sum() int64 {
	return p.slack + p.wakeup + p.kernel + p.scheduler + p.throttled + p.queue
}

func partsOf(w *wakeup, deadline, limit, now int64) parts {
	b := Blame{Throttled: new(hist.Hist), Told: new(Told)}
	b.record(w, deadline, limit, now)
	return parts{
		int64(b.Slack.Sum), int64(b.Wakeup.Sum), int64(b.Told.Kernel.Sum),
		int64(b.Told.Scheduler.Sum), int64(b.Throttled.Sum), int64(b.Queue.Sum),
	}
}

func TestBlameParts(t *testing.T) {
	told := wakeup{armed: 100, running: 150, handed: 150, begun: 150, toldFrom: 0, toldArmed: 100, ready: 130}
	handed := wakeup{armed: 100, running: 150, handed: 160, begun: 190, toldFrom: 0, toldArmed: 100, ready: 130}
	throttled := func(w wakeup, by int64) wakeup { w.throttled, w.throttledTo = by, w.begun; return w }
	since := wakeup{armed: 100, running: 150, handed: 160, begun: 190, toldFrom: 0, toldArmed: 100, ready: 130, throttled: 50, throttledTo: 150}
	untold := wakeup{armed: 100, running: 150, handed: 160, begun: 190, toldFrom: never}
	late := wakeup{armed: 80, running: 150, handed: 150, begun: 150, toldFrom: 100, toldArmed: 110, ready: 130}
	work := atWork(100)
	for _, test := range []struct {
		name                 string
		w                    wakeup
		deadline, limit, now int64
		want                 parts
	}{
		{"in order", told, 90, 100, 155, parts{slack: 10, kernel: 30, scheduler: 20, queue: 5}},
		{"not told", untold, 90, 100, 200, parts{slack: 10, wakeup: 80, queue: 20}},
		{"fired before its limit", told, 140, 170, 155, parts{slack: 15}},
		{"due before anybody was asked", told, 50, 60, 155, parts{slack: 10, kernel: 30, scheduler: 20, queue: 45}},
		{"due while the kernel slept", told, 110, 110, 155, parts{kernel: 20, scheduler: 20, queue: 5}},
		{"due while the goroutine waited", told, 140, 140, 155, parts{scheduler: 10, queue: 5}},
		{"due since", told, 151, 153, 155, parts{slack: 2, queue: 2}},
		{"told from a limit on", late, 90, 100, 155, parts{slack: 10, kernel: 20, scheduler: 20, queue: 15}},
		{"fired by a clock that has been set back", told, 90, 95, 120, parts{slack: 5, queue: 25}},
		{"not told before", late, 80, 90, 155, parts{slack: 10, wakeup: 60, queue: 5}},
		{"runner", handed, 100, 100, 200, parts{kernel: 30, scheduler: 50, queue: 20}},
		{"due before the runner", handed, 155, 155, 200, parts{scheduler: 30, queue: 15}},
		{"due while the runner waited", handed, 180, 180, 200, parts{scheduler: 10, queue: 10}},
		{"at work", work, 70, 80, 130, parts{slack: 10, queue: 50}},
		{"throttled kernel", throttled(told, 25), 100, 100, 155, parts{kernel: 5, scheduler: 20, throttled: 25, queue: 5}},
		{"throttled kernel and scheduler", throttled(told, 45), 100, 100, 155, parts{scheduler: 5, throttled: 45, queue: 5}},
		{"throttled scheduler", throttled(handed, 55), 100, 100, 200, parts{kernel: 25, throttled: 55, queue: 20}},
		{"throttled longer than waited", throttled(told, 1000), 120, 120, 155, parts{throttled: 30, queue: 5}},
		{"throttled before", throttled(told, 1000), 152, 152, 155, parts{queue: 3}},
		{"due after it was throttled", since, 160, 160, 200, parts{scheduler: 30, queue: 10}},
		{"due while it was throttled", since, 140, 140, 200, parts{scheduler: 30, throttled: 10, queue: 20}},
		{"throttled, not told", throttled(untold, 30), 100, 100, 200, parts{wakeup: 50, throttled: 30, queue: 20}},
	} {
		got := partsOf(&test.w, test.deadline, test.limit, test.now)
		if got != test.want {
			t.Errorf("%s: %+v, want %+v", test.name, got, test.want)
		}
	}
}

// TestBlameSum: whatever the wakeup was like, the parts of each timer add up to
// its lateness.
func TestBlameSum(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 100_000 {
		var at [5]int64
		for k := range at {
			at[k] = rng.Int64N(40)
			if k > 0 {
				at[k] += at[k-1]
			}
		}
		w := wakeup{armed: at[0], running: at[2], handed: at[3], begun: at[4]}
		w.throttled, w.throttledTo = rng.Int64N(3)*rng.Int64N(50), at[2]+rng.Int64N(40)
		w.toldFrom, w.toldArmed, w.ready = at[0]+rng.Int64N(40), at[0]+rng.Int64N(at[2]-at[0]+1), at[1]
		now := w.begun + rng.Int64N(20)
		deadline := now - rng.Int64N(200)
		limit := deadline + rng.Int64N(60) - 2
		if p := partsOf(&w, deadline, limit, now); p.sum() != now-deadline || min(p.slack, p.wakeup, p.kernel, p.scheduler, p.throttled, p.queue) < 0 {
			t.Fatalf("%+v of timer %d..%d fired at %d: %+v", w, deadline, limit, now, p)
		}
	}
}

// TestBlameFill: every timer counts in every part, one with kernel and scheduler
// told apart there, another in their sum.
func TestBlameFill(t *testing.T) {
	var a, sum Blame
	b := Blame{Told: new(Told)}
	w := wakeup{armed: 100, running: 150, handed: 150, begun: 150, toldFrom: never}
	for range 3 {
		a.record(&w, 90, 100, 155)
	}
	a.record(&w, 155, 155, 155)
	w.toldFrom, w.toldArmed, w.ready = 0, 100, 130
	b.record(&w, 90, 90, 155)
	b.record(&w, 155, 155, 155)
	sum.add(&a)
	sum.add(&b)
	sum.fill(6)
	for name, h := range map[string]struct {
		h        *hist.Hist
		all, pos uint64
	}{
		"slack":     {&sum.Slack, 6, 3},
		"wakeup":    {&sum.Wakeup, 4, 3},
		"kernel":    {&sum.Told.Kernel, 2, 1},
		"scheduler": {&sum.Told.Scheduler, 2, 1},
		"throttled": {sum.Throttled, 6, 0},
		"queue":     {&sum.Queue, 6, 4},
	} {
		total := uint64(0)
		for _, n := range h.h.Counts {
			total += n
		}
		if h.h.Count != h.all || total != h.all || h.h.Counts[0] != h.all-h.pos {
			t.Errorf("%s: %d values, %d of them 0, and a count of %d; want %d, %d", name, total, h.h.Counts[0], h.h.Count, h.all, h.all-h.pos)
		}
	}
}
