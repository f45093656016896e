package slab

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"
)

// seed returns the seed of a random test: that of the environment variable
// DETENT_SEED, to repeat a run, or a new one. It is printed when the test fails.
func seed(t testing.TB) uint64 {
	s := uint64(time.Now().UnixNano())
	if v := os.Getenv("DETENT_SEED"); v != "" {
		var err error
		if s, err = strconv.ParseUint(v, 10, 64); err != nil {
			t.Fatalf("DETENT_SEED: %v", err)
		}
	}
	t.Logf("to repeat: DETENT_SEED=%d", s)
	return s
}

// checkInvariants compares all that the slab notes about itself with the nodes
// that are allocated, and those that have been retired.
func checkInvariants(t testing.TB, s *Slab, live, retired map[uint32]bool) {
	t.Helper()
	if s.used != len(live) {
		t.Fatalf("used is %d, %d nodes are allocated", s.used, len(live))
	}
	if len(s.info) != len(s.chunks) {
		t.Fatalf("%d infos for %d chunks", len(s.info), len(s.chunks))
	}
	used := make([]uint32, len(s.chunks))
	for _, set := range []map[uint32]bool{live, retired} {
		for i := range set {
			used[i/ChunkSize]++
		}
	}
	open := map[uint32]bool{}
	for _, c := range s.open {
		if open[c] {
			t.Fatalf("chunk %d is listed twice", c)
		}
		open[c] = true
	}
	spare := 0
	for at := range s.info {
		c := &s.info[at]
		if c.dropped != (s.chunks[at] == nil) || c.dropped != slices.Contains(s.gone, uint32(at)) {
			t.Fatalf("chunk %d: dropped %v, present %v, gone %v", at, c.dropped, s.chunks[at] != nil, s.gone)
		}
		if (*s.dir.Load())[at].Load() != s.chunks[at] {
			t.Fatalf("chunk %d is another one for Lookup", at)
		}
		if c.listed != open[uint32(at)] {
			t.Fatalf("chunk %d: listed %v, on the stack %v", at, c.listed, open[uint32(at)])
		}
		if c.dropped {
			if used[at] != 0 {
				t.Fatalf("chunk %d was let go with %d nodes in use", at, used[at])
			}
			continue
		}
		if c.used != used[at] {
			t.Fatalf("chunk %d: used is %d, %d nodes are", at, c.used, used[at])
		}
		if c.used == 0 {
			spare++
		}
		if room := c.free != 0 || c.fresh < ChunkSize; room && !c.listed && uint32(at) != s.cur {
			t.Fatalf("chunk %d has room that nobody will find", at)
		}
		checkChunk(t, s, uint32(at), live, retired)
	}
	if s.spare != spare {
		t.Fatalf("spare is %d, %d chunks are", s.spare, spare)
	}
	// The chunk to allocate from is kept in any case.
	if limit := spareChunks + len(s.chunks)/64 + 1; spare > limit {
		t.Fatalf("%d spare chunks are kept, at most %d should be", spare, limit)
	}
	for i, have := 0, map[uint32]bool{}; i < len(s.gone); i++ {
		if have[s.gone[i]] {
			t.Fatalf("place %d is gone twice", s.gone[i])
		}
		have[s.gone[i]] = true
	}
}

// checkChunk walks the free list of the chunk at a place.
func checkChunk(t testing.TB, s *Slab, at uint32, live, retired map[uint32]bool) {
	t.Helper()
	c := &s.info[at]
	free := map[uint32]bool{}
	for i := c.free; i != 0; i = s.Node(i).Pos {
		switch {
		case i/ChunkSize != at || i%ChunkSize >= c.fresh:
			t.Fatalf("chunk %d: node %d is on the free list; fresh is %d", at, i, c.fresh)
		case free[i]:
			t.Fatalf("chunk %d: the free list goes round at node %d", at, i)
		case live[i] || retired[i]:
			t.Fatalf("chunk %d: node %d is in use and free", at, i)
		}
		free[i] = true
	}
	first := uint32(0)
	if at == 0 {
		first = 1
	}
	if c.fresh-first != c.used+uint32(len(free)) {
		t.Fatalf("chunk %d: %d used, %d free, %d ever allocated", at, c.used, len(free), c.fresh-first)
	}
	for k := first; k < c.fresh; k++ {
		i := at*ChunkSize + k
		w := s.Node(i).word.Load()
		if w&wordLocked != 0 {
			t.Fatalf("node %d is locked", i)
		}
		if retired[i] != (w == 0) {
			t.Fatalf("node %d: word %x, retired %v", i, w, retired[i])
		}
	}
}

// walk is a random walk between few nodes and many, next to a model of maps.
type walk struct {
	t       *testing.T
	rng     *rand.Rand
	s       Slab
	live    map[uint32]bool
	current []Handle
	stale   []Handle // a sample
	ever    map[Handle]bool

	dropped, regrown int
}

func (w *walk) up() {
	for w.s.Full() {
		if at := w.s.Grow(new(Chunk)); at < w.s.Chunks()-1 {
			w.regrown++
		}
	}
	i, n := w.s.Alloc()
	h := w.s.Handle(i)
	if i == 0 || w.live[i] || w.ever[h] || w.s.Lookup(h) != n {
		w.t.Fatalf("allocated node %d, handle %x: in use %v, given out before %v", i, h, w.live[i], w.ever[h])
	}
	n.Deadline = int64(h)
	w.live[i], w.ever[h] = true, true
	w.current = append(w.current, h)
}

func (w *walk) down() {
	if len(w.current) == 0 {
		return
	}
	last := len(w.current) - 1
	k := w.rng.IntN(last + 1)
	h := w.current[k]
	w.current[k] = w.current[last]
	w.current = w.current[:last]
	n := w.s.Node(h.Index())
	if n.Deadline != int64(h) || !w.s.Current(h) {
		w.t.Fatalf("node %d is not as it was left", h.Index())
	}
	if w.rng.IntN(2) == 0 {
		n.Lock()
		n.EndLocked()
	} else if w.s.Invalidate(h) != n {
		w.t.Fatalf("Invalidate(%x) did not find its node", h)
	}
	delete(w.live, h.Index())
	if w.s.Free(h.Index(), n) >= 0 {
		w.dropped++
	}
	if len(w.stale) < 10_000 {
		w.stale = append(w.stale, h)
	} else {
		w.stale[w.rng.IntN(len(w.stale))] = h
	}
}

func (w *walk) check() {
	w.t.Helper()
	if w.s.Len() != len(w.current) {
		w.t.Fatalf("Len = %d, want %d", w.s.Len(), len(w.current))
	}
	checkInvariants(w.t, &w.s, w.live, nil)
	for range min(50, len(w.stale)) {
		mustBeStale(w.t, &w.s, w.stale[w.rng.IntN(len(w.stale))])
	}
	for range min(50, len(w.current)) {
		if h := w.current[w.rng.IntN(len(w.current))]; !w.s.Current(h) || w.s.Lookup(h).Deadline != int64(h) {
			w.t.Fatalf("handle %x is not current, or its node another's", h)
		}
	}
}

func TestModel(t *testing.T) {
	w := &walk{t: t, rng: rand.New(rand.NewPCG(seed(t), 0)), live: map[uint32]bool{}, ever: map[Handle]bool{}}
	phases := 5
	if testing.Short() {
		phases = 3
	}
	for phase := range phases {
		rising := phase%2 == 0
		for rising && len(w.current) < 12*ChunkSize || !rising && len(w.current) > w.rng.IntN(3) {
			with := w.rng.IntN(5) > 0
			for range 1 + w.rng.IntN(1<<w.rng.IntN(12)) {
				if with == rising {
					w.up()
				} else {
					w.down()
				}
			}
			w.check()
		}
	}
	if w.dropped == 0 || w.regrown == 0 {
		t.Errorf("%d chunks let go, %d places used again: the walk does not go far enough", w.dropped, w.regrown)
	}
}
