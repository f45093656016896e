//go:build amd64 || arm64

package trace

import (
	"errors"
	"slices"

	"github.com/cilium/ebpf"

	"github.com/detent-go/detent/trace/internal/bpf"
)

// The kernel's map of stacks is a way for them to get here, and small: programs
// without frame pointers make a new one of nearly every sample, as long as what is
// no code is not cut off. Each gathering empties it.

// stackDepth is that of the programs' clock.h.
const stackDepth = 40

// keptStacks is how many different stacks are remembered of one clock of a process,
// and maxStacks how many are reported.
const (
	keptStacks = 128
	maxStacks  = 16
)

// samples are the stacks of one process that have been gathered.
type samples struct {
	clocks  map[bpf.TraceClockKey][]Stack
	profile []Stack
}

func (t *Tracer) samplesLocked(pid int) *samples {
	s := t.stacks[pid]
	if s == nil {
		s = &samples{clocks: make(map[bpf.TraceClockKey][]Stack)}
		t.stacks[pid] = s
	}
	return s
}

// gatherStacksLocked takes the stacks out of the kernel. What is sampled while it
// does so may be lost.
func (t *Tracer) gatherStacksLocked() error {
	used := make(map[uint32][]uint64) // the addresses, by id; nil for one that is gone
	addresses := func(id int32) []uint64 {
		addrs, ok := used[uint32(id)]
		if !ok {
			var a [stackDepth]uint64
			if t.maps[bpf.TraceMapStacks].Lookup(uint32(id), &a) == nil {
				addrs = a[:]
			}
			used[uint32(id)] = addrs
		}
		return addrs
	}
	// That of a map that nobody writes to is empty.
	return errors.Join(
		takeAll(t.maps[bpf.TraceMapClockStacks], func(key bpf.TraceClockStackKey, n uint64) {
			s := t.samplesLocked(int(key.Use.Tgid))
			s.clocks[key.Use] = t.addStackLocked(s.clocks[key.Use], int(key.Use.Tgid), addresses(key.Stack), n)
		}),
		takeAll(t.maps[bpf.TraceMapProfileStacks], func(key bpf.TraceProfileStackKey, n uint64) {
			s := t.samplesLocked(int(key.Tgid))
			s.profile = t.addStackLocked(s.profile, int(key.Tgid), addresses(key.Stack), n)
		}),
		t.freeStacks(used),
	)
}

func (t *Tracer) freeStacks(used map[uint32][]uint64) error {
	for id := range used {
		if err := t.maps[bpf.TraceMapStacks].Delete(id); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return err
		}
	}
	return nil
}

// takeAll empties a map of counts.
func takeAll[K any](m *ebpf.Map, visit func(K, uint64)) error {
	var keys []K
	if err := readMap(m, func(k K, n *uint64) {
		keys = append(keys, k)
		visit(k, *n)
	}); err != nil {
		return err
	}
	for _, k := range keys {
		if err := m.Delete(k); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return err
		}
	}
	return nil
}

// addStackLocked counts a stack. One whose addresses are gone counts for nothing.
func (t *Tracer) addStackLocked(to []Stack, pid int, addrs []uint64, n uint64) []Stack {
	if addrs == nil {
		return to
	}
	s := Stack{n, t.stackLocked(t.meetLocked(pid, ""), addrs)}
	key := stackKey(&s)
	for i := range to {
		if stackKey(&to[i]) == key {
			to[i].Count += n
			return to
		}
	}
	if len(to) >= keptStacks {
		t.lost["stacks: too many different ones"] += n
		return to
	}
	return append(to, s)
}

// reported returns the most frequent stacks, as a copy.
func reported(s []Stack) []Stack {
	s = slices.Clone(s)
	sortStacks(s)
	return slices.Clip(s[:min(len(s), maxStacks)])
}
