package netpoll114

// Filed is how many timers are in the heaps of e, deleted ones included.
func Filed(e *Engine) (n int) {
	for _, p := range e.procs {
		n += int(p.timers.count.Load())
	}
	return n
}
