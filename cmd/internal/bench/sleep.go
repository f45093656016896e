package bench

import (
	"fmt"
	"time"
)

const opSleep = "sleep"

// sleepModes is how a sleep is made.
const (
	sleepEngine = "" // by the engine's Sleep
	sleepThread = Nanosleep
)

// sleep makes req.N sleeps of req.D, one after another.
func (h *host[T]) sleep(req request) (values, error) {
	if req.N <= 0 {
		return nil, fmt.Errorf("%d sleeps", req.N)
	}
	late := make([]int64, req.N)
	switch req.Mode {
	case sleepEngine:
		h.engine.Sleep(req.D) // sets the engine up
		for i := range late {
			late[i] = lateBy(req.D, h.engine.Sleep)
		}
	case sleepThread:
		// The thread ends with the goroutine that has locked it, and its
		// timer slack with it.
		done := make(chan error)
		go func() { done <- threadSleeps(req.D, late) }()
		if err := <-done; err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("unknown sleep %q", req.Mode)
	}
	v := values{}
	v.lateness(late)
	return v, nil
}

// lateBy is how much longer than d sleep(d) takes.
func lateBy(d time.Duration, sleep func(time.Duration)) int64 {
	begin := now()
	sleep(d)
	return now() - begin - int64(d)
}

const (
	idleSleep = 50 * time.Microsecond
	busySleep = 100 * time.Microsecond
)

func playSleep(s *stage) error {
	ws, err := s.pair(s.procs)
	if err != nil {
		return err
	}
	var thread *worker
	if err := threadSleeps(time.Microsecond, make([]int64, 1)); err != nil {
		s.skip("against nanosleep", err.Error())
	} else if thread, err = s.worker(Time, s.procs); err != nil {
		return err
	}
	threadP50, threadP99 := specLateP50, specLateP99
	for _, sp := range []*spec{&threadP50, &threadP99} {
		sp.against = Nanosleep
		sp.label += ", nanosleep on a locked thread"
	}
	return s.rounds(func(int) error {
		for _, w := range ws {
			v, err := w.call(request{Op: opSleep, N: s.plan.Sleeps, D: idleSleep})
			if err != nil {
				return err
			}
			s.addAll("", w.side, v, specLateP50, specLateP99)
			if w.side == Detent && thread != nil {
				s.addAll("", w.side, v, threadP50, threadP99)
			}
		}
		if thread == nil {
			return nil
		}
		v, err := thread.call(request{Op: opSleep, Mode: sleepThread, N: s.plan.Sleeps, D: idleSleep})
		if err != nil {
			return err
		}
		s.addAll("", Nanosleep, v, threadP50, threadP99)
		return nil
	})
}
