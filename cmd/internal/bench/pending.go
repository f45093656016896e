package bench

import (
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"sync"
	"time"
)

const opFill = "fill"

// spans are durations that nobody waits for, spread over [1 h, 2 h).
var spans = func() (d [1024]time.Duration) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range d {
		d[i] = time.Hour + time.Duration(r.Int64N(int64(time.Hour)))
	}
	return d
}()

// fill starts req.N timers and keeps them, each P its share of them, as the
// connections of a server would be spread.
func (h *host[T]) fill(req request) (values, error) {
	h.kept = make([]T, req.N)
	h.warm()
	h.empty = gcMillis(3)
	// The collections that growing to a new size provokes belong to the
	// set-up; none of the measurements after it is about them.
	old := debug.SetGCPercent(-1)
	h.start(h.kept)
	debug.SetGCPercent(old)
	runtime.GC()
	return nil, nil
}

// start fills timers with pending ones.
func (h *host[T]) start(timers []T) {
	procs := runtime.GOMAXPROCS(0)
	var wg sync.WaitGroup
	for p := range procs {
		part := share(timers, p, procs)
		wg.Go(func() {
			r := rand.New(rand.NewPCG(3, uint64(p)))
			for i := range part {
				part[i] = h.engine.AfterFunc(time.Hour+time.Duration(r.Int64N(int64(time.Hour))), nop)
			}
		})
	}
	wg.Wait()
}

// warm has the engine set itself up, so that its first timer costs no more
// than the next.
func (h *host[T]) warm() { h.engine.AfterFunc(time.Hour, nop).Stop() }

// share returns the p-th of n parts of s, all of nearly the same length.
func share[E any](s []E, p, n int) []E { return s[len(s)*p/n : len(s)*(p+1)/n] }
