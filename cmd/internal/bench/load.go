package bench

import (
	"fmt"

	"github.com/detent-go/detent/cmd/internal/load"
)

const opLoad = "load"

// load sleeps req.D again and again for req.Window under the load req.Mode,
// with req.N pairs.
func (h *host[T]) load(req request) (values, error) {
	h.engine.Sleep(req.D) // sets the engine up
	stop, err := load.Kind(req.Mode).Start(req.N)
	if err != nil {
		return nil, err
	}
	var late []int64
	for begin := now(); len(late) == 0 || now()-begin < int64(req.Window); {
		late = append(late, lateBy(req.D, h.engine.Sleep))
	}
	stop()
	v := values{}
	v.lateness(late)
	return v, nil
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
			name := string(b)
			if b == load.PingPong {
				name = fmt.Sprintf("%d pairs of %s", s.plan.LoadPairs, b)
			}
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
