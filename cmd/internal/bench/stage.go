package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/detent-go/detent/cmd/internal/machine"
)

// A stage is where one scenario is played: it starts workers, counts rounds
// and keeps the figures. It belongs to the goroutine in Run.
type stage struct {
	ctx      context.Context
	plan     Plan
	procs    int
	spawn    Spawner
	report   *Report
	progress func(round int)

	name    string
	workers []*worker
	series  []*series
}

// series are the figures of one row as they come in, in the order of rounds.
type series struct {
	name   string
	spec   spec
	bySide map[string][]float64
}

// worker starts a process for side, which ends with the scenario.
func (s *stage) worker(side string, procs int) (*worker, error) {
	w, err := newWorker(s.ctx, s.spawn, side, procs)
	if err == nil {
		s.workers = append(s.workers, w)
	}
	return w, err
}

// pair starts a worker for each engine, in the order of engines.
func (s *stage) pair(procs int) ([]*worker, error) {
	var ws []*worker
	for _, side := range engines {
		w, err := s.worker(side, procs)
		if err != nil {
			return nil, err
		}
		ws = append(ws, w)
	}
	return ws, nil
}

// filledPair is a pair with n pending timers in each.
func (s *stage) filledPair(procs, n int) ([]*worker, error) {
	ws, err := s.pair(procs)
	if err != nil || n == 0 {
		return ws, err
	}
	for _, w := range ws {
		if _, err := w.call(request{Op: opFill, N: n}); err != nil {
			return nil, err
		}
	}
	return ws, nil
}

// fresh has a new process for side do req.
func (s *stage) fresh(side string, procs int, req request) (values, error) {
	w, err := newWorker(s.ctx, s.spawn, side, procs)
	if err != nil {
		return nil, err
	}
	v, err := w.call(req)
	return v, errors.Join(err, w.close())
}

// rounds calls f once for each round, the first being 0.
func (s *stage) rounds(f func(round int) error) error {
	for i := range s.plan.Rounds {
		s.progress(i + 1)
		if err := f(i); err != nil {
			return err
		}
	}
	return nil
}

// add keeps one figure of the row (name, sp). Rows come in the order in which
// they get their first.
func (s *stage) add(name string, sp spec, side string, v float64) {
	i := slices.IndexFunc(s.series, func(r *series) bool {
		return r.name == name && r.spec.metric == sp.metric && r.spec.against == sp.against
	})
	if i < 0 {
		i = len(s.series)
		s.series = append(s.series, &series{name: name, spec: sp, bySide: map[string][]float64{}})
	}
	r := s.series[i]
	r.bySide[side] = append(r.bySide[side], v)
}

// addAll keeps those of v that specs name, and notes those that this machine
// could not give.
func (s *stage) addAll(name string, side string, v values, specs ...spec) {
	for _, sp := range specs {
		if f, ok := v[sp.metric]; ok {
			s.add(name, sp, side, f)
		} else {
			s.skip(strings.TrimPrefix(name+", "+sp.label, ", "), "not available on this system")
		}
	}
}

// skip notes what this machine cannot measure.
func (s *stage) skip(what, why string) {
	s.report.missing(Missing{Scenario: s.name, Case: what, Reason: why})
}

// note adds what a reader of the figures should know.
func (s *stage) note(format string, args ...any) {
	s.report.Notes = append(s.report.Notes, s.name+": "+fmt.Sprintf(format, args...))
}

// roomFor says whether the machine has the memory for a case, and notes it if
// not. A machine that does not tell has it.
func (s *stage) roomFor(name string, bytes uint64) bool {
	free, ok := machine.AvailableMemory()
	if !ok || bytes <= free {
		return true
	}
	s.skip(name, fmt.Sprintf("needs %s of memory, %s is free", machine.Gigabytes(bytes), machine.Gigabytes(free)))
	return false
}

// closeWorkers ends the workers that the scenario has started so far.
func (s *stage) closeWorkers() error {
	var errs []error
	for _, w := range s.workers {
		errs = append(errs, w.close())
	}
	s.workers = nil
	return errors.Join(errs...)
}

// end stops the workers and makes rows of the pairs that are complete.
func (s *stage) end() error {
	err := s.closeWorkers()
	for _, r := range s.series {
		against := r.spec.against
		if against == "" {
			against = Time
		}
		other, detent := r.bySide[against], r.bySide[Detent]
		if min(len(other), len(detent)) > 0 {
			s.report.Rows = append(s.report.Rows, r.spec.row(s.name, r.name, other, detent))
		}
	}
	if s.ctx.Err() != nil {
		return nil // they were killed
	}
	return err
}

// pause waits for d while nothing is asked of the workers.
func (s *stage) pause(d time.Duration) error {
	select {
	case <-s.ctx.Done():
		return s.ctx.Err()
	case <-time.After(d):
		return nil
	}
}
