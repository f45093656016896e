//go:build amd64 || arm64

package trace

import (
	"github.com/cilium/ebpf"

	"github.com/detent-go/detent/trace/internal/bpf"
)

// raw is what the kernel's programs have counted for one process.
type raw struct {
	comm     string
	clocks   map[bpf.TraceClockKey]*bpf.TraceClockUse
	times    map[bpf.TraceClockKey]*bpf.TraceHist
	timers   map[bpf.TraceTimerKey]*bpf.TraceTimerUse
	lateness map[uint32]*bpf.TraceLateness // by kind
	profile  *bpf.TraceProfile
	goTimers *bpf.TraceHist
}

// archive has the processes that have ended, as they were reported last.
type archive struct {
	processes []Process
}

// maxArchive bounds the processes that are reported after their end.
const maxArchive = 512

func (t *Tracer) archiveLocked(p Process) {
	p.Ended = true
	if len(t.archive.processes) >= maxArchive {
		t.archive.processes = t.archive.processes[1:]
		t.lost["ended processes"]++
	}
	t.archive.processes = append(t.archive.processes, p)
}

// readMap calls visit for each entry of a map. A new value is decoded for each.
func readMap[K, V any](m *ebpf.Map, visit func(K, *V)) error {
	var key K
	value := new(V)
	it := m.Iterate()
	for it.Next(&key, value) {
		visit(key, value)
		value = new(V)
	}
	return it.Err()
}

// readLocked reads all that the kernel's programs have counted.
func (t *Tracer) readLocked() (map[int]*raw, error) {
	found := make(map[int]*raw)
	of := func(tgid uint32) *raw {
		r := found[int(tgid)]
		if r == nil {
			r = &raw{
				clocks: make(map[bpf.TraceClockKey]*bpf.TraceClockUse), times: make(map[bpf.TraceClockKey]*bpf.TraceHist),
				timers: make(map[bpf.TraceTimerKey]*bpf.TraceTimerUse), lateness: make(map[uint32]*bpf.TraceLateness),
			}
			found[int(tgid)] = r
		}
		return r
	}
	name := func(r *raw, comm [16]int8) {
		if s := cString(comm); s != "" {
			r.comm = s
		}
	}
	var errs []error
	note := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	f := t.opts.Features
	if f&WatchClockCalls != 0 {
		note(readMap(t.maps[bpf.TraceMapClockUses], func(k bpf.TraceClockKey, v *bpf.TraceClockUse) {
			r := of(k.Tgid)
			r.clocks[k] = v
			name(r, v.Comm)
		}))
	}
	if f&WatchCallTimes != 0 {
		note(readMap(t.maps[bpf.TraceMapClockTimes], func(k bpf.TraceClockKey, v *bpf.TraceHist) { of(k.Tgid).times[k] = v }))
	}
	if f&(WatchTimers|WatchLateness) != 0 {
		note(readMap(t.maps[bpf.TraceMapTimerUses], func(k bpf.TraceTimerKey, v *bpf.TraceTimerUse) {
			r := of(k.Tgid)
			r.timers[k] = v
			name(r, v.Comm)
		}))
	}
	if f&WatchLateness != 0 {
		note(readMap(t.maps[bpf.TraceMapLatenesses], func(k bpf.TraceLatenessKey, v *bpf.TraceLateness) {
			r := of(k.Tgid)
			r.lateness[k.Kind] = v
			name(r, v.Comm)
		}))
	}
	if f&WatchProfile != 0 {
		note(readMap(t.maps[bpf.TraceMapProfiles], func(k uint32, v *bpf.TraceProfile) { of(k).profile = v }))
	}
	if f&WatchGoTimers != 0 {
		note(readMap(t.maps[bpf.TraceMapGoTimers], func(k uint32, v *bpf.TraceHist) { of(k).goTimers = v }))
	}
	if len(errs) > 0 {
		return nil, errs[0]
	}
	return found, nil
}

// forgetLocked takes an ended process out of the kernel's maps.
func (t *Tracer) forgetLocked(pid int, r *raw) {
	tgid := uint32(pid)
	for k := range r.clocks {
		_ = t.maps[bpf.TraceMapClockUses].Delete(k)
	}
	for k := range r.times {
		_ = t.maps[bpf.TraceMapClockTimes].Delete(k)
	}
	for k := range r.timers {
		_ = t.maps[bpf.TraceMapTimerUses].Delete(k)
	}
	for kind := range r.lateness {
		_ = t.maps[bpf.TraceMapLatenesses].Delete(bpf.TraceLatenessKey{Tgid: tgid, Kind: kind})
	}
	if r.profile != nil {
		_ = t.maps[bpf.TraceMapProfiles].Delete(tgid)
		_ = t.maps[bpf.TraceMapVdsos].Delete(tgid)
	}
	if r.goTimers != nil {
		_ = t.maps[bpf.TraceMapGoTimers].Delete(tgid)
	}
}

// A gathering is one round of reading.
type gathering struct {
	processes []Process // those that live
	kernel    []TimerUse
}

// What gatherLocked reports of.
const (
	all = iota
	onlyEnded
)

// gatherLocked reads everything, and moves what has ended to the archive. For
// onlyEnded it returns nothing.
func (t *Tracer) gatherLocked(what int) (gathering, error) {
	var g gathering
	found := make(map[int]*raw)
	if t.maps != nil {
		var err error
		if found, err = t.readLocked(); err != nil {
			return g, err
		}
		if err := t.gatherStacksLocked(); err != nil {
			return g, err
		}
	}
	if r := found[0]; r != nil {
		if what == all {
			g.kernel = t.timersLocked(r)
		}
		delete(found, 0)
	}
	// Those that are followed by name are there also if they do nothing.
	for _, pid := range t.opts.PIDs {
		if found[pid] == nil && t.known[pid] != nil {
			found[pid] = &raw{}
		}
	}
	for pid, r := range found {
		k := t.meetLocked(pid, "")
		if k != nil && k.ended {
			continue // archived, and nothing new is coming
		}
		alive := k != nil && k.ReadUsage(t.root)
		if k != nil && !alive {
			k.ended = true
		}
		if alive {
			if what == all {
				g.processes = append(g.processes, t.processLocked(pid, k, r))
			} else if !t.opts.everyone() {
				t.stateLocked(k, false)
			}
			continue
		}
		p := t.processLocked(pid, k, r)
		t.forgetLocked(pid, r)
		t.archiveLocked(p)
		delete(t.stacks, pid)
		if !t.named(pid) {
			delete(t.known, pid)
		}
	}
	return g, nil
}

// named says that a process was asked for by its id.
func (t *Tracer) named(pid int) bool {
	for _, p := range t.opts.PIDs {
		if p == pid {
			return true
		}
	}
	return false
}

func cString(b [16]int8) string {
	s := make([]byte, 0, len(b))
	for _, c := range b {
		if c == 0 {
			break
		}
		s = append(s, byte(c))
	}
	return string(s)
}

func histogram(h *bpf.TraceHist) *Histogram {
	d := &Histogram{Count: h.Count, Sum: duration(h.Sum), Max: duration(h.Max)}
	copy(d.Buckets[:], h.Buckets[:])
	return d
}
