package shard

import "github.com/detent-go/detent/internal/slab"

// payload is what the shard keeps beside the nodes of a chunk: for each what it
// does when due, a function or a Target, and a Tick's period. The arrays are made
// when they are first needed. Most shards need only functions: 8 bytes a timer,
// and one pointer for the collector to follow.
type payload struct {
	funcs   *[slab.ChunkSize]func()
	targets *[slab.ChunkSize]Target
	periods *[slab.ChunkSize]int64
	samples *[slab.ChunkSize]uint64 // see profile
}

// setLocked notes what node i does.
func (s *Shard) setLocked(i uint32, t *Timer) {
	p, at := &s.payloads[i/slab.ChunkSize], i%slab.ChunkSize
	if t.Func != nil {
		if p.funcs == nil {
			p.funcs = new([slab.ChunkSize]func())
		}
		p.funcs[at] = t.Func
		return
	}
	if p.targets == nil {
		p.targets = new([slab.ChunkSize]Target)
	}
	p.targets[at] = t.Target
	if t.Kind == Tick {
		if p.periods == nil {
			p.periods = new([slab.ChunkSize]int64)
		}
		p.periods[at] = t.Period
	}
}

// actionLocked returns what node i does.
func (s *Shard) actionLocked(i uint32) action {
	p, at := &s.payloads[i/slab.ChunkSize], i%slab.ChunkSize
	if p.funcs != nil {
		if f := p.funcs[at]; f != nil {
			return action{f: f}
		}
	}
	return action{t: p.targets[at]}
}

// loadLocked loads what is about to be needed into the cache: the processor
// does so at the same time for all of them, if it need not wait for one before it
// comes to the next.
func (s *Shard) loadLocked(nodes []uint32) {
	found := 0
	for _, i := range nodes {
		if p := &s.payloads[i/slab.ChunkSize]; p.funcs != nil && p.funcs[i%slab.ChunkSize] != nil {
			found++
		}
	}
	s.loaded = found
}

// clearLocked lets go of what node i does.
func (s *Shard) clearLocked(i uint32) {
	p, at := &s.payloads[i/slab.ChunkSize], i%slab.ChunkSize
	if p.funcs != nil {
		p.funcs[at] = nil
	}
	if p.targets != nil {
		p.targets[at] = nil
	}
}

// action is what a timer does when due.
type action struct {
	f func()
	t Target // where f is nil
}

func (a action) fire(s *Shard, h Handle) {
	if a.f != nil {
		a.f()
		return
	}
	a.t.Fire(s, h)
}
