package clock

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/detent-go/detent/internal/tsc"
)

// advanceLocked makes the engine able to read: by a new line, or in kernel mode.
func (e *engine) advanceLocked() {
	switch {
	case e.kernel.Load() != nil:
		// Somebody else has been faster.
	case e.tracker == nil:
		now := Mono.Nanos()
		if err := tsc.Check(); err != nil {
			e.kernel.Store(&kernelMode{phase: untrusted, err: err, due: forever})
		} else if err := e.trusted(); err != nil {
			e.kernel.Store(&kernelMode{phase: untrusted, err: err, due: now + int64(watch)})
		} else {
			e.calibrateLocked(0)
		}
	case e.line.Covers(tsc.Ordered()):
		// Somebody else has been faster.
	default:
		e.renewLocked()
	}
}

// renewLocked puts the next line in force, after the last one has passed.
func (e *engine) renewLocked() {
	now := Mono.Nanos()
	if e.doomed == nil && now-e.checked >= int64(watch) {
		e.doomed = e.checkLocked(now)
	}
	if err := e.doomed; err != nil {
		e.fallBackLocked(err, now+int64(watch))
		return
	}
	if e.tracker.Jumps-e.strange >= manyJumps {
		e.fallBackLocked(errJumps, now+int64(penalty))
		return
	}
	if now-e.line.End() <= int64(late) {
		e.lates = 0
	} else if e.lates++; e.lates >= 2 {
		e.leaveLocked(&kernelMode{phase: idle, due: forever})
		return
	}
	e.nextLocked(e.sample(Mono, 5, e.enough), 0)
}

// checkLocked looks at what may have changed about the trust in the counter.
func (e *engine) checkLocked(now int64) error {
	if jumped := e.tracker.Jumps != e.strange; jumped {
		e.firstRaw = e.sample(Raw, 32, 0)
	} else if !e.settled {
		e.frequencyLocked(e.sample(Raw, 32, 0))
	}
	e.checked, e.strange = now, e.tracker.Jumps
	if _, err := cpus.compared(); errors.Is(err, errApart) {
		return err
	}
	return e.trusted()
}

// fallBackLocked withdraws trust, until due.
func (e *engine) fallBackLocked(err error, due int64) {
	e.doomed = nil
	e.fallbacks++
	e.leaveLocked(&kernelMode{phase: untrusted, err: err, due: due})
}

// leaveLocked makes readings be of the kernel's clock, after the last line has
// passed.
func (e *engine) leaveLocked(k *kernelMode) {
	k.floor = e.line.End()
	if old := e.kernel.Load(); old != nil {
		k.floor = old.floor
	}
	e.lates = 0
	e.publishLocked(tsc.Line{}, 0, 0)
	e.kernel.Store(k)
}

// calibrateLocked begins to measure the counter.
func (e *engine) calibrateLocked(floor int64) {
	e.grain = tsc.Grain()
	e.firstMono, e.firstRaw = e.sample(Mono, 32, 0), e.sample(Raw, 32, 0)
	cpus.compared() // starts it
	due := e.firstMono.Ref + int64(calibration)
	e.kernel.Store(&kernelMode{phase: calibrating, err: ErrCalibrating, floor: floor, due: due})
}

// reconsiderLocked changes from one kernelMode to the next, or to a line.
func (e *engine) reconsiderLocked(k *kernelMode, now int64) {
	switch k.phase {
	case idle:
		e.kernel.Store(&kernelMode{phase: resuming, floor: k.floor, due: now + int64(resumption)})
	case resuming:
		if now-e.checked >= int64(watch) {
			if err := e.checkLocked(now); err != nil {
				e.fallBackLocked(err, now+int64(watch))
				return
			}
		}
		e.resumeLocked(k)
	case untrusted, calibrating:
		err := e.trusted()
		switch {
		case err != nil:
			e.kernel.Store(&kernelMode{phase: untrusted, err: err, floor: k.floor, due: now + int64(watch)})
		case k.phase == untrusted || now-e.firstMono.Ref > int64(stale):
			e.calibrateLocked(k.floor)
		default:
			e.measureLocked(k, now)
		}
	}
}

// measureLocked ends the calibration, if the CPUs have been compared by now.
func (e *engine) measureLocked(k *kernelMode, now int64) {
	lastMono, lastRaw := e.sample(Mono, 32, 0), e.sample(Raw, 32, 0)
	rawHz, _ := tsc.Fit(e.firstRaw, lastRaw)
	if hz, _ := tsc.Fit(e.firstMono, lastMono); hz == 0 || rawHz == 0 {
		e.calibrateLocked(k.floor)
		return
	}
	done, err := cpus.compared()
	if errors.Is(err, errApart) {
		e.kernel.Store(&kernelMode{phase: untrusted, err: err, floor: k.floor, due: forever})
		return
	}
	if !done {
		if err == nil {
			err = ErrCalibrating
		}
		e.kernel.Store(&kernelMode{phase: calibrating, err: err, floor: k.floor, due: now + int64(calibration)})
		return
	}
	e.frequencyLocked(lastRaw)
	tracker := tsc.NewTracker(e.firstMono, lastMono)
	if old := e.tracker; old != nil {
		tracker.Jumps, tracker.Excess, tracker.Worst = old.Jumps, old.Excess, old.Worst
	}
	e.tracker, e.checked, e.strange = tracker, now, tracker.Jumps
	e.enough = lastMono.Width() * 5 / 4
	e.resumeLocked(k)
}

// resumeLocked goes from a kernelMode in which readers fence to a line. From its
// first statement on readers wait for mu, and what they have read is not beyond
// the sample.
func (e *engine) resumeLocked(k *kernelMode) {
	e.kernel.Store(nil)
	s := e.sample(Mono, 5, e.enough)
	e.nextLocked(s, max(k.floor, s.Ref))
}

// sample samples a clock of the kernel.
func (e *engine) sample(c Clock, tries int, enough uint64) tsc.Sample {
	return tsc.Take(c.Nanos, e.grain, tries, enough)
}

// trusted looks at what may change about the trust in the counter.
func (e *engine) trusted() error {
	if e.trust != nil {
		return e.trust()
	}
	return checkClocksource()
}

// frequencyLocked finds the counter's frequency by CLOCK_MONOTONIC_RAW, or confirms
// what the machine states. The first time it is the fit of a calibration; later
// ones, over longer times, settle what that has left open.
func (e *engine) frequencyLocked(last tsc.Sample) {
	hz, err := tsc.Fit(e.firstRaw, last)
	if hz == 0 || e.tracker != nil && math.Abs(hz/e.tracker.Frequency()-1) > 0.01 {
		// One of the clocks has stood still meanwhile, as in a suspend.
		e.firstRaw = last
		return
	}
	over := time.Duration(last.Ref - e.firstRaw.Ref).Round(10 * time.Millisecond)
	if stated, by := tsc.Stated(); stated != 0 && math.Abs(stated-hz) <= err {
		e.hz, e.hzBy, e.settled = stated, by, true
		return
	}
	rounded, certain := tsc.WholeKHz(hz, err)
	e.hz, e.hzBy = rounded, fmt.Sprintf("CLOCK_MONOTONIC_RAW over %v", over)
	if rounded != hz {
		e.hzBy += ", rounded to 1 kHz"
	}
	e.settled = certain || err < 100
}

// health returns the state, after a look at trust if none has been taken lately.
func (e *engine) health() Health {
	now, _ := e.read() // begins, if nothing has been read yet
	e.mu.Lock()
	defer e.mu.Unlock()
	h := Health{Frequency: e.hz, FrequencyBy: e.hzBy, Lines: e.lines, Fallbacks: e.fallbacks}
	if t := e.tracker; t != nil {
		h.Jumps, h.Excess, h.Worst = t.Jumps, t.Excess, time.Duration(t.Worst)
	}
	cpus.report(&h, e.hz, e.grain)
	k := e.kernel.Load()
	if k != nil && (k.phase == untrusted || k.phase == calibrating) {
		h.Err = k.err
		return h
	}
	err := e.doomed
	if err == nil && now-e.checked >= int64(watch) {
		err = e.checkLocked(now)
		if err != nil && k != nil {
			e.fallBackLocked(err, now+int64(watch))
			h.Fallbacks = e.fallbacks
		} else {
			// A line in force cannot be taken back. The next reading that
			// needs a new one falls back.
			e.doomed = err
		}
	}
	h.Trusted, h.Err = err == nil, err
	return h
}
