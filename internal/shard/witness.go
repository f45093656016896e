package shard

import (
	"sync"

	"github.com/detent-go/detent/internal/waker"
)

// witness is what a group has that wants to know when the kernel did its part. The
// thread is started with the group's first timerfd.
type witness struct {
	mu     sync.Mutex
	thread *waker.Witness
	err    error // of the last try, or nil
}

// watch has the thread watch the timerfd of s, and returns the thread; or nil
// where there is none, or there cannot be one.
func (w *witness) watch(s *Shard, p *waker.Precise) *waker.Witness {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.group.closed.Load() {
		return nil
	}
	if w.thread == nil {
		w.thread, w.err = waker.NewWitness(len(s.group.shards))
		if w.err != nil {
			return nil
		}
	}
	if w.err = w.thread.Watch(s.Index, p); w.err != nil {
		return nil
	}
	return w.thread
}

func (w *witness) lastErr() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// close ends the thread. The group counts as closed, so no other one is started.
func (w *witness) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.thread != nil {
		w.thread.Close()
		w.thread.Wait()
		w.thread = nil
	}
}

// tellLocked notes in w when the kernel had done what the timerfd was last armed
// for, if the witness knows, which counts the runtime's monotonic time.
func (s *Shard) tellLocked(w *wakeup, running int64) {
	shift := s.group.shift()
	if at, ok := s.witness.Woken(s.Index, s.preciseFrom+shift, running+shift); ok {
		w.toldFrom, w.toldArmed, w.ready = s.armedPrecise, s.preciseFrom, min(max(at-shift, s.preciseFrom), running)
	}
}
