//go:build amd64 || arm64

package trace

import (
	"io/fs"
	"time"

	"github.com/detent-go/detent/trace/internal/proc"
)

// known is what is remembered of a process.
type known struct {
	*proc.Process
	began     time.Duration // CPU time when it was first seen
	foundRead bool          // whether Found has been tried
	detailed  bool
	mapsRead  time.Time  // when the mappings were read last
	program   *goProgram // nil until it has been looked at
	ended     bool

	// What was read last while it lived: of its end there is nothing to read.
	lastGo    *GoScheduler
	lastQuota *Quota
}

// meetLocked returns what is known of a process, and reads it if that is nothing.
// It returns nil if the process has ended before it was met.
func (t *Tracer) meetLocked(pid int, why EventKind) *known {
	if k := t.known[pid]; k != nil && !k.ended && why != EventExec {
		return k
	}
	p, err := proc.Read(t.root, pid)
	if err != nil {
		return t.known[pid]
	}
	k := &known{Process: p, began: p.CPU}
	if old := t.known[pid]; old != nil && old.Start == p.Start {
		k.began = old.began // it runs another program now
	}
	for key := range t.frames {
		if key.pid == pid {
			delete(t.frames, key)
		}
	}
	t.known[pid] = k
	t.quotaBaseLocked(k)
	return k
}

// detailLocked reads what explains a process's readings of clocks, once.
func (t *Tracer) detailLocked(k *known) {
	if !k.detailed {
		k.detailed = true
		k.mapsRead = time.Now()
		k.ReadDetails(t.root)
	}
}

// findLocked reads the vector that the program has found, once.
func (t *Tracer) findLocked(k *known) {
	t.detailLocked(k)
	if !k.foundRead {
		k.foundRead = true
		_ = k.ReadFound(t.root) // unknown then, as Found says
	}
}

// A frameKey is an address in a process.
type frameKey struct {
	pid int
	pc  uint64
}

// maxFrames bounds the names that are remembered.
const maxFrames = 1 << 16

// frameLocked names what an address of a process is in.
func (t *Tracer) frameLocked(k *known, pc uint64) Frame {
	key := frameKey{k.PID, pc}
	if f, ok := t.frames[key]; ok {
		return f
	}
	t.detailLocked(k)
	// A library may have been loaded since the mappings were read.
	if k.At(pc) == nil && !k.ended && time.Since(k.mapsRead) > time.Second {
		k.ReadMaps(t.root)
		k.mapsRead = time.Now()
	}
	s, object := t.symbols.Lookup(k.Process, pc)
	f := Frame{PC: pc, Func: s.Func, Object: object, File: s.File, Line: s.Line}
	if len(t.frames) >= maxFrames {
		clear(t.frames)
	}
	t.frames[key] = f
	return f
}

// stackLocked names a stack's functions. The first address is of the instruction
// that is next, the others are where calls return to, one instruction after what is
// meant. A program without frame pointers has what it likes in their place: what is
// no code ends the stack.
func (t *Tracer) stackLocked(k *known, addrs []uint64) []Frame {
	var frames []Frame
	for i, pc := range addrs {
		if pc == 0 {
			break
		}
		at := pc
		if i > 0 {
			at--
		}
		f := Frame{PC: pc}
		if k != nil {
			f = t.frameLocked(k, at)
			f.PC = pc
			if m := k.At(at); i > 0 && (m == nil || !m.Exec) {
				break
			}
		}
		frames = append(frames, f)
	}
	return frames
}

func cgroupPIDs(root fs.FS, dir string) ([]int, error) { return proc.PIDs(root, dir) }
