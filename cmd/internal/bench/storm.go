package bench

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

var (
	specCPU        = spec{label: "CPU, first start to last fire", metric: "cpu_s", unit: unitS}
	specFiringCPU  = spec{label: "CPU, firing alone", metric: "firing_cpu_s", unit: unitS}
	specGoroutines = spec{label: "goroutines more, at most", metric: "goroutines_more", unit: unitCount}
	specLateP50    = spec{label: "lateness p50", metric: "late_p50_us", unit: unitUs}
	specLateP99    = spec{label: "lateness p99", metric: "late_p99_us", unit: unitUs}
	specLateMax    = spec{label: "lateness, worst", metric: "late_max_us", unit: unitUs}
	specEarly      = spec{label: "fired early", metric: "early", unit: unitCount, diff: true}
)

// bytesPerFire is what a timer takes whose callback waits for its turn in a
// goroutine of its own, as package time's do.
const bytesPerFire = 4096

func playStorm(s *stage) error {
	b := s.plan.Storm
	if !s.roomFor(burstCase(b), uint64(b.N)*bytesPerFire) {
		return nil
	}
	return s.playBurst(burstCase(b), b, specCPU, specFiringCPU, specGoroutines, specLateP50, specLateP99, specLateMax, specEarly)
}

func playSpread(s *stage) error {
	b := s.plan.Spread
	return s.playBurst(burstCase(b), b, specCPU, specLateP50, specLateP99, specEarly)
}

func burstCase(b Burst) string { return fmt.Sprintf("%s within %v", count(b.N), b.Window) }

// playBurst measures specs of the burst, in new processes each round or in
// the same two for all.
func (s *stage) playBurst(name string, b Burst, specs ...spec) error {
	if !b.Fresh {
		return s.playTrain(name, &b, s.plan.Rounds, s.rounds, specs...)
	}
	once := func(f func(int) error) error { return f(0) }
	return s.rounds(func(int) error { return s.playTrain(name, &b, 1, once, specs...) })
}

// playTrain arms k windows for each engine at once, to fire in turn: the
// waiting that makes the durations long is done once for all. Detent's comes
// first, because package time's may run late into what comes next. collect
// calls what it is given for each window.
func (s *stage) playTrain(name string, b *Burst, k int, collect func(func(int) error) error, specs ...spec) error {
	period := time.Duration(len(engines)) * (b.Window + b.Gap)
	ws, err := s.armTrain(*b, k, period)
	for errors.Is(err, errLead) && b.longerLead() {
		if err = s.closeWorkers(); err == nil {
			ws, err = s.armTrain(*b, k, period)
		}
	}
	if err != nil {
		return err
	}
	for _, w := range ws {
		if _, err := w.call(request{Op: opWait, Window: b.Lead + period*time.Duration(k)}); err != nil {
			return err
		}
	}
	err = collect(func(i int) error {
		for _, w := range ws {
			v, err := w.call(request{Op: opCollect, K: i})
			if err != nil {
				return err
			}
			if last := i == k-1 && w == ws[len(ws)-1]; !last && v["overrun_s"] > b.Gap.Seconds() {
				s.note("%s, %s was still firing when the next window began, and disturbed it", name, w.side)
			}
			s.addAll(name, w.side, v, specs...)
		}
		return nil
	})
	return errors.Join(err, s.closeWorkers())
}

// errLead says that starting the timers took longer than the lead.
var errLead = errors.New("starting the timers took longer than the time before the first was due")

// armTrain starts a worker for each engine, and in it the timers of k
// windows; each engine's windows follow the other's.
func (s *stage) armTrain(b Burst, k int, period time.Duration) ([]*worker, error) {
	begin, lead := time.Now(), b.Lead
	var ws []*worker
	for _, side := range slices.Backward(engines) {
		w, err := s.worker(side, s.procs)
		if err != nil {
			return nil, err
		}
		ws = append(ws, w)
	}
	for _, w := range ws {
		sent := time.Now()
		v, err := w.call(request{Op: opArm, N: b.N, K: k, Window: b.Window, Lead: lead, Period: period})
		if err != nil {
			return nil, err
		}
		if v["lead_left_s"] < 0 {
			return nil, errLead
		}
		lead += b.Window + b.Gap - time.Since(sent)
	}
	if time.Since(begin) > b.Lead { // the last was armed while the first fired
		return nil, errLead
	}
	return ws, nil
}

// longerLead doubles the lead, within reason, for a machine that is too slow
// or too busy for it.
func (b *Burst) longerLead() bool {
	const most = time.Minute
	b.Lead = max(2*b.Lead, 10*time.Millisecond)
	return b.Lead <= most
}
