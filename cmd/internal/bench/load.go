package bench

import "github.com/detent-go/detent/cmd/internal/load"

const opLoad = "load"

// load sleeps req.D again and again under the load req.Mode, with req.N pairs, on
// a lane of kind req.Lane if that is set: from req.Lead after the load has begun, for
// req.Window.
func (h *host[T]) load(req request) (values, error) {
	e, end := h.engine, func() error { return nil }
	if req.Lane != "" {
		var err error
		if e, end, err = e.Lane(laneKind(req.Lane)); err != nil {
			return nil, err
		}
	}
	e.Sleep(req.D) // sets the engine up
	stop, err := load.Kind(req.Mode).Start(req.N)
	if err != nil {
		_ = end()
		return nil, err
	}
	for begin := now(); now()-begin < int64(req.Lead); {
		e.Sleep(req.D)
	}
	var late []int64
	for begin := now(); len(late) == 0 || now()-begin < int64(req.Window); {
		late = append(late, lateBy(req.D, e.Sleep))
	}
	stop()
	v := values{}
	v.lateness(late)
	return v, end()
}

// playLoad compares by difference: what counts is whether a sleeper can rely
// on detent as much as on package time, to within 100 us.
func playLoad(s *stage) error {
	ws, err := s.pair(s.procs)
	if err != nil {
		return err
	}
	p50, p99 := specLateP50, specLateP99
	for _, sp := range []*spec{&p50, &p99} {
		sp.diff, sp.resolution = true, micros(int64(busySleep))
	}
	return s.rounds(func(int) error {
		for _, b := range load.Kinds()[1:] {
			name := s.loadName(b)
			for _, w := range ws {
				v, err := w.call(request{Op: opLoad, Mode: string(b), N: s.plan.LoadPairs, D: busySleep, Window: s.plan.LoadWindow})
				if err != nil {
					return err
				}
				s.addAll(name, w.side, v, p50, p99)
			}
		}
		return nil
	})
}
